"""Rows of the commands about samples and surrogates: leakage, scores, predictions."""

from typing import Annotated, NotRequired, TypedDict

from sweep.answers.types import words
from sweep.answers.types.facts import AnswerType, Fact

Split = Annotated[str, Fact("what is held out: random, model, system, strategy, scale, size")]


class LeakageRow(TypedDict):
    """True if what a split tests occurs in what it trains on."""

    split: Split
    train: Annotated[int, Fact("rows that are trained on")]
    test: Annotated[int, Fact("rows that are tested")]
    leaks: Annotated[bool, Fact("whether what is tested is trained on")]
    what: Annotated[str, Fact("what leaks; empty: nothing")]


class ScoreRow(TypedDict):
    """How good a surrogate, or a baseline, is on what a split holds out."""

    split: Split
    method: Annotated[str, Fact("the surrogate's learner, or what it is held against")]
    rows: NotRequired[Annotated[int, Fact("rows that were tested")]]
    r2_log_time: NotRequired[
        Annotated[float, Fact("R2 of the logarithm of an epoch's time")] | None
    ]
    median_error: NotRequired[
        Annotated[float, Fact("median of the relative error of an epoch's time")] | None
    ]
    p95_error: NotRequired[Annotated[float, Fact("its 95th percentile")] | None]
    feasibility_f1: NotRequired[Annotated[float, Fact("F1 of feasibility")] | None]
    kendall_tau: NotRequired[
        Annotated[float, Fact("Kendall's tau of strategies, on average")] | None
    ]
    slices: NotRequired[Annotated[int, Fact("points in which two strategies or more are feasible")]]
    median_regret: NotRequired[
        Annotated[float, Fact("by what part the pick takes longer than the best, median")] | None
    ]
    mean_regret: NotRequired[Annotated[float, Fact("the same on average")] | None]
    p95_regret: NotRequired[Annotated[float, Fact("its 95th percentile")] | None]
    forbidden_picks: NotRequired[
        Annotated[float, Fact("part of the points whose first pick is forbidden")] | None
    ]
    note: NotRequired[Annotated[str, Fact("why there are no scores")]]


class SurrogateRow(TypedDict):
    """A surrogate's answer for a row of features."""

    comp_time: words.CompTime
    comm_time: words.CommTime
    epoch_time: words.EpochTime
    memory: words.Memory
    feasible: Annotated[bool, Fact("whether the surrogate says that nothing forbids it")]
    feasible_chance: Annotated[float, Fact("how sure it is")]
    outside: Annotated[str, Fact("features outside of the range of training; empty: none")]
    model: NotRequired[words.Model]
    system_name: NotRequired[Annotated[str, Fact("the machine")]]
    dataset: NotRequired[words.Dataset]
    strategy: NotRequired[words.Strategy]
    slice: NotRequired[Annotated[int, Fact("the number of the point")]]
    epoch_time_spread: NotRequired[
        Annotated[float, Fact("standard deviation of its logarithm over the learners")]
    ]


ANSWERS = {
    "leakage": AnswerType(LeakageRow),
    "surrogate evaluate": AnswerType(ScoreRow),
    "surrogate predict": AnswerType(SurrogateRow),
}
