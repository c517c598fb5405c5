"""Rows of the commands about samples and surrogates: leakage, scores and predictions."""

from typing import Annotated, NotRequired, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType

Split = Annotated[str, "the held-out part: random, model, system, strategy, scale or size"]


class LeakageRow(TypedDict):
    """Row of `surrogate check`: whether a split's test rows occur in its training rows."""

    split: Split
    train: Annotated[int, "training rows"]
    test: Annotated[int, "test rows"]
    leaks: Annotated[bool, "whether test rows occur in training"]
    what: Annotated[str, "what leaks; empty: nothing"]


class ScoreRow(TypedDict):
    """Row of `surrogate evaluate`: the scores of a surrogate or a baseline on a split."""

    split: Split
    method: Annotated[str, "the network, or the baseline"]
    # A row has scores, or a note.
    rows: NotRequired[Annotated[int, "test rows"]]
    r2_log_time: NotRequired[Annotated[float, "R2 of the logarithm of the epoch time"] | None]
    median_error: NotRequired[Annotated[float, "median relative error of the epoch time"] | None]
    p95_error: NotRequired[Annotated[float, "95th percentile of that error"] | None]
    feasibility_f1: NotRequired[Annotated[float, "F1 of feasibility"] | None]
    kendall_tau: NotRequired[Annotated[float, "mean Kendall's tau of strategies"] | None]
    slices: NotRequired[Annotated[int, "points with at least two feasible strategies"]]
    median_regret: NotRequired[
        Annotated[float, "median slowdown of the pick, as a fraction"] | None
    ]
    mean_regret: NotRequired[Annotated[float, "mean of that slowdown"] | None]
    p95_regret: NotRequired[Annotated[float, "95th percentile of that slowdown"] | None]
    forbidden_picks: NotRequired[Annotated[float, "share of points whose pick is forbidden"] | None]
    note: NotRequired[Annotated[str, "why there are no scores"]]


class SurrogateRow(TypedDict):
    """Row of `surrogate predict`: the answer for one row of features."""

    comp_time: words.CompTime
    comm_time: words.CommTime
    epoch_time: words.EpochTime
    memory: words.Memory
    feasible: Annotated[bool, "whether the surrogate predicts a feasible configuration"]
    feasible_chance: Annotated[float, "predicted probability of being feasible"]
    outside: Annotated[str, "features outside the training range; empty: none"]
    # Labels, if the rows of features have them.
    model: NotRequired[words.Model]
    system_name: NotRequired[Annotated[str, "the machine"]]
    dataset: NotRequired[words.Dataset]
    strategy: NotRequired[words.Strategy]
    slice: NotRequired[Annotated[int, "number of the point"]]
    # Of an ensemble.
    epoch_time_spread: NotRequired[Annotated[float, "spread of log epoch_time over the ensemble"]]


ANSWERS = {
    "surrogate check": AnswerType(LeakageRow),
    "surrogate evaluate": AnswerType(ScoreRow),
    "surrogate predict": AnswerType(SurrogateRow),
}
