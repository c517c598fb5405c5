"""JSON schemas of what each verb prints with `--format json`: for agents and scripts."""

from sweep.show.answer_keys import (
    BY_PRECISION,
    COUNT,
    COUNTS,
    FLAG,
    NUMBER,
    RECORD,
    RECORDS,
    TEXT,
    Key,
    Schema,
)
from sweep.show.answer_rows import PLACE, Answer, describe_row, describe_rows
from sweep.show.calibration_keys import CALIBRATION
from sweep.show.comparison_keys import RUNS
from sweep.show.hybrid_keys import HYBRID
from sweep.show.placement_keys import PLACEMENT
from sweep.show.sample_keys import LEAKAGE, SAID, SCORES

DRAFT = "https://json-schema.org/draft/2020-12/schema"

DEGREES = "replicas group_size segment_count? global_batch"
NO_DEGREES = "replicas? group_size? segment_count? global_batch?"
TIMES = "epoch_time? comp_time? comm_time?"

_PREDICTED = Answer(
    f"{PLACE} pe replicas? group? segments? batch? global_batch? {TIMES} epochs? train_time? "
    "iteration_time? iteration_comp_time? iteration_comm_time? memory? memory_parts "
    "largest_batch? feasible limit oracle precision software times profile convergence notes terms "
    "parameters calibration? intervals? extrapolation smallest_group?",
    "samples iterations",
    own={
        "batch": Key(NUMBER, "samples a replica"),
        "global_batch": Key(NUMBER, "samples of an iteration"),
        "samples": Key(NUMBER, "samples of an epoch"),
    },
    record=True,
)
_LAYERS = Answer(
    "layer kind output x y weights biases macs split seconds_per_sample forward "
    "backward overhead gathered_items halo_items memory",
    "stage device",
    own={
        "layer": Key(TEXT, "the layer's name"),
        "kind": Key(TEXT, "what it computes"),
        "output": Key(COUNTS, "channels and extents of its output"),
        "x": Key(COUNT, "items of its input, a sample"),
        "y": Key(COUNT, "items of its output, a sample"),
        "weights": Key(COUNT, "weights"),
        "biases": Key(COUNT, "biases"),
        "macs": Key(NUMBER, "multiply-accumulates of a sample, forward"),
        "stage": Key(COUNT, "the pipeline stage, from 1"),
        "device": Key(COUNT, "the device it is placed on, from 1"),
        "split": Key(FLAG, "whether the PEs of a group divide it"),
        "seconds_per_sample": Key(NUMBER, "time of both passes on one PE, a sample"),
        "forward": Key(NUMBER, "time forward on one PE, a sample"),
        "backward": Key(NUMBER, "time backward on one PE, a sample"),
        "overhead": Key(NUMBER, "time of a pass on one PE, however many samples"),
        "gathered_items": Key(NUMBER, "items that one PE sends in gathers, a sample"),
        "halo_items": Key(NUMBER, "items that one PE sends as halos, a sample"),
        "memory": Key(NUMBER, "what one PE keeps of it for the backward pass, with its weights"),
    },
)

ANSWERS: dict[str, Answer] = {
    "best": Answer(
        f"rank? {PLACE} pe? batch? {NO_DEGREES} {TIMES} pe_hours? memory? feasible limit "
        "rejection?",
        "epochs? train_time? cost? epoch_time_p10? epoch_time_p90? train_time_p10? "
        "train_time_p90? faster_than_next?",
        axes="sought",
        several_systems=True,
    ),
    "limits": Answer(
        f"{PLACE} batch largest_pe? forbidden_by",
        "marks fastest_pe? fastest_time? efficient_pe? fastest_time_p10? fastest_time_p90? "
        "fastest_pe_p10? fastest_pe_p90? efficient_pe_p10? efficient_pe_p90? soonest_pe? "
        "soonest_time? soonest_epochs? soonest_efficient_pe? soonest_time_p10? soonest_time_p90? "
        "soonest_pe_p10? soonest_pe_p90?",
        axes="known",
        several_systems=True,
    ),
    "limits --crossovers": Answer(
        f"{PLACE} over along first? at reason?",
        "over_system first_p10? first_p90? crosses_probability?",
        axes="known",
        several_systems=True,
    ),
    "bottleneck": Answer(
        f"{PLACE} pe batch {DEGREES} epoch_time binds share kind sentence computing shares memory "
        "memory_parts feasible limit",
        "share_p10 share_p90 computing_p10 computing_p90 shares_p10 shares_p90 binds_probability",
        axes="known",
        several_systems=True,
    ),
    "sensitivity": Answer(
        f"{PLACE} pe batch parameter value elasticity upgrade? change?",
        axes="known",
        several_systems=True,
    ),
    "provision --deadline": Answer(
        f"{PLACE} pe? batch? {NO_DEGREES} epochs? train_time? pe_hours? holds? reason?",
        "cost?",
        axes="sought",
        several_systems=True,
    ),
    "provision --need": Answer(
        f"{PLACE} pe parameter own? needed? reason?",
        "batch needed_p10? needed_p90? met_probability? efficiency_p10? efficiency_p90?",
        axes="known",
        own={
            f"efficiency_p{percent}": Key(
                NUMBER, f"{percent}th percentile: the parallel efficiency that is reached at best"
            )
            for percent in (10, 90)
        },
        several_systems=True,
    ),
    "pareto": Answer(
        f"{PLACE} pe batch",
        "epoch_time train_time pe_hours cost memory",
        axes="known",
        several_systems=True,
    ),
    "regret": Answer(
        "rank? model dataset strategy worst_loss? worst_at? mean_loss? infeasible_at",
        "system worst_precision? worst_software?",
        axes="known",
        several_systems=True,
    ),
    "diff": Answer(
        "same cells compared inputs versions axes variables answers feasibility? winners",
        record=True,
    ),
    "predict": _PREDICTED,
    "explain": Answer(
        f"{_PREDICTED.always} sentence? formulas hidden memory_formulas symbols launch? layers",
        _PREDICTED.sometimes,
        own=_PREDICTED.own,
        record=True,
    ),
    "explain --layers-table": _LAYERS,
    "status": Answer(
        "store name complete blocks blocks_done summaries_missing cells bytes",
        "damaged left?",
        record=True,
    ),
    "compare": Answer(
        "rows summary",
        own={
            "rows": Key(
                describe_rows(RUNS),
                "a row of the file each, in its order, with what is predicted of it",
            ),
            "summary": Key(RECORD, "accuracies: overall, strategies_mean, by_strategy, by_model"),
        },
        record=True,
    ),
    "calibrate": CALIBRATION,
    "hybrid": HYBRID,
    "place": PLACEMENT,
    "leakage": LEAKAGE,
    "surrogate evaluate": SCORES,
    "surrogate predict": SAID,
    "models": Answer(
        "model title dataset parameters macs layers source",
        own={
            "title": Key(TEXT, "what people call it"),
            "parameters": Key(COUNT, "weights and biases"),
            "macs": Key(NUMBER, "multiply-accumulates of a sample, forward"),
            "layers": Key(COUNT, "layers"),
            "source": Key(TEXT, "where it comes from"),
        },
    ),
    "datasets": Answer(
        "dataset samples shape targets? source",
        own={
            "shape": Key(TEXT, "a sample's channels and extents, such as 3x226x226"),
            "targets": Key(COUNT, "what is to be told of a sample, such as classes"),
            "source": Key(TEXT, "where it comes from"),
        },
    ),
    "systems": Answer(
        "system pe peak_flops memory memory_bandwidth pes_per_node links_per_node? levels source",
        own={
            "pe": Key(TEXT, "the processing element, by its name"),
            "memory": Key(NUMBER, "memory of a PE"),
            "pes_per_node": Key(COUNT, "PEs of a node"),
            "links_per_node": Key(COUNT, "links of a node to the network"),
            "levels": Key(RECORDS, "levels of the network, the innermost first"),
            "source": Key(TEXT, "where the figures come from"),
        },
    ),
    "strategies": Answer(
        "strategy meaning limit",
        own={
            "meaning": Key(TEXT, "what it divides"),
            "limit": Key(TEXT, "how far it goes"),
        },
    ),
    "parameters": Answer(
        "parameter unit oracle value? spread? meaning source",
        own={
            "unit": Key(TEXT, "the unit of its values"),
            "oracle": Key({"enum": ["machine", "paper", "both"]}, "whose it is"),
            "value": Key(BY_PRECISION, "before any run, one or one a precision", "of unit"),
            "spread": Key(BY_PRECISION, "standard deviation of its logarithm"),
            "meaning": Key(TEXT, "what it is"),
            "source": Key(TEXT, "where its value comes from"),
        },
    ),
}


def build_schemas() -> dict[str, Schema]:
    """The schema of each verb's JSON, by the verb, JSON schema draft 2020-12.

    `unit` beside `type` is an annotation: the unit of the numbers, SI.
    """
    return {verb: _build_schema(verb, answer) for verb, answer in ANSWERS.items()}


def _build_schema(verb: str, answer: Answer) -> Schema:
    head = {"$schema": DRAFT, "title": f"paradl {verb} --format json"}
    row = describe_row(answer)
    return head | (row if answer.record else {"type": "array", "items": row})
