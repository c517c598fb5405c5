"""Keys of what `paradl hybrid` answers: when a hybrid beats data parallelism, end to end."""

from sweep.show.answer_keys import COUNT, COUNTS, FLAG, NUMBER, TEXT, TEXTS, Key
from sweep.show.answer_rows import Answer, describe_row, describe_rows

_EXTRAPOLATED = Key(FLAG, "whether epochs of a batch were needed that nobody measured")
# What several of the tables have.
_SHARED = {
    **{
        f"p{percent}": Key(NUMBER, f"{percent}th percentile over the draws")
        for percent in (10, 50, 90)
    },
    "group": Key(COUNT, "PEs of a group"),
    "speedup": Key(NUMBER, "time to the target on one PE over that on so many"),
    "extrapolated": _EXTRAPOLATED,
}
_EPOCHS = Answer(
    "source epochs_min critical_batch? measured converges_to? alone alone_extrapolated",
    own={
        "source": Key(TEXTS, "where epochs were measured"),
        "epochs_min": Key(NUMBER, "epochs to the target with small batches"),
        "critical_batch": Key(NUMBER, "the batch that takes twice as many; null: none is known"),
        "measured": Key(
            COUNTS | {"items": {"type": ["integer", "null"]}}, "the least and largest batch"
        ),
        "converges_to": Key(NUMBER, "the largest batch that reaches the target; null: no bound"),
        "alone": Key(NUMBER, "epochs with the batch of one replica"),
        "alone_extrapolated": _EXTRAPOLATED,
    },
)
_BASIS = {"enum": ["oracle", "given"]}
_SPLITS = Answer(
    "strategy group speedup? fastest basis scaling_efficiency",
    own={
        **_SHARED,
        "speedup": Key(NUMBER, "of an iteration in a group over one PE"),
        "fastest": Key(FLAG, "whether no other split of groups of this size has more"),
        "basis": Key(_BASIS, "whose the speed-up is"),
        "scaling_efficiency": Key(_BASIS, "whose T_1 / T_N across replicas is"),
    },
)
_ROWS = Answer(
    "pe strategy replicas scaling_efficiency? speedup? p10? p50? p90? wins feasible limit "
    "global_batch epochs? converges extrapolated",
    own={
        **_SHARED,
        "scaling_efficiency": Key(NUMBER, "T_1 / T_N across replicas"),
        "wins": Key(FLAG, "whether it is the soonest of all on so many PEs"),
        "epochs": Key(NUMBER, "epochs to the target; null: it is not reached"),
        "converges": Key(FLAG, "whether the target is reached"),
    },
)
_CROSSOVERS = Answer(
    "strategy group against pe? p10? p90? chance several speedup? extrapolated?",
    own={
        **_SHARED,
        "against": Key({"enum": ["same", "best"]}, "data on as many PEs, or its best up to there"),
        "pe": Key(COUNT, "PEs from which on the hybrid wins; null: it never does"),
        "chance": Key(NUMBER, "part of the draws in which it wins from some count on"),
        "several": Key(FLAG, "whether it wins and loses again before"),
    },
)
_GAIN = Answer(
    "pe gain? p10? p50? p90? chance? strategy? hybrid_pe? data_pe? extrapolated?",
    own={
        **_SHARED,
        "pe": Key(COUNT, "PEs at most, of either"),
        "gain": Key(NUMBER, "by what part the best hybrid is sooner than the best of data"),
        "chance": Key(NUMBER, "part of the draws in which it is"),
        "hybrid_pe": Key(COUNT, "PEs of the best hybrid"),
        "data_pe": Key(COUNT, "PEs of the best of data"),
    },
)
HYBRID = Answer(
    "model dataset? system? batch iteration_time? target epochs splits rows crossovers gain "
    "oracle? precision? software? times? profile? notes warnings",
    own={
        "batch": Key(COUNT, "samples per replica"),
        "system": Key(TEXT, "the machine; null: speed-ups were given"),
        "iteration_time": Key(NUMBER, "time of an iteration on one PE", "s"),
        "target": Key(TEXT, "what is trained to, such as top1>=0.759"),
        "epochs": Key(describe_row(_EPOCHS), "epochs to the target by batch"),
        "splits": Key(
            describe_rows(_SPLITS), "a row a hybrid: what a group gains, and who says so"
        ),
        "rows": Key(describe_rows(_ROWS), "a row a PE count and strategy"),
        "crossovers": Key(describe_rows(_CROSSOVERS), "two rows a hybrid: from where on it wins"),
        "gain": Key(describe_row(_GAIN), "the best hybrid against the best of data"),
        "warnings": Key(TEXTS, "what to know of the answer"),
    },
    record=True,
)
