"""Keys of what is asked of samples and of surrogates: leakage, scores, predictions."""

from sweep.show.answer_keys import COUNT, FLAG, NUMBER, TEXT, Key
from sweep.show.answer_rows import Answer

_SPLIT = Key(TEXT, "what is held out: random, model, system, strategy, scale, size")

LEAKAGE = Answer(
    "split train test leaks what",
    own={
        "split": _SPLIT,
        "train": Key(COUNT, "rows that are trained on"),
        "test": Key(COUNT, "rows that are tested"),
        "leaks": Key(FLAG, "whether what is tested is trained on"),
        "what": Key(TEXT, "what leaks; empty: nothing"),
    },
)
SCORES = Answer(
    "split method",
    "rows r2_log_time? median_error? p95_error? feasibility_f1? kendall_tau? slices "
    "median_regret? mean_regret? p95_regret? forbidden_picks? note",
    own={
        "split": _SPLIT,
        "method": Key(TEXT, "the surrogate's learner, or what it is held against"),
        "rows": Key(COUNT, "rows that were tested"),
        "r2_log_time": Key(NUMBER, "R2 of the logarithm of an epoch's time"),
        "median_error": Key(NUMBER, "median of the relative error of an epoch's time"),
        "p95_error": Key(NUMBER, "its 95th percentile"),
        "feasibility_f1": Key(NUMBER, "F1 of feasibility"),
        "slices": Key(COUNT, "points in which two strategies or more are feasible"),
        "kendall_tau": Key(NUMBER, "Kendall's tau of strategies, on average"),
        "median_regret": Key(NUMBER, "by what part the pick takes longer than the best, median"),
        "mean_regret": Key(NUMBER, "the same on average"),
        "p95_regret": Key(NUMBER, "its 95th percentile"),
        "forbidden_picks": Key(NUMBER, "part of the points whose first pick is forbidden"),
        "note": Key(TEXT, "why there are no scores"),
    },
)
SAID = Answer(
    "comp_time comm_time epoch_time memory feasible feasible_chance outside",
    "model system_name dataset strategy slice epoch_time_spread",
    own={
        "system_name": Key(TEXT, "the machine"),
        "slice": Key(COUNT, "the number of the point"),
        "feasible": Key(FLAG, "whether the surrogate says that nothing forbids it"),
        "feasible_chance": Key(NUMBER, "how sure it is"),
        "epoch_time_spread": Key(NUMBER, "standard deviation of its logarithm over the learners"),
        "outside": Key(TEXT, "features outside of the range of training; empty: none"),
    },
)
