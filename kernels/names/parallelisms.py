"""Facts of each parallelism, which can be combined, and the columns of layouts of transformers.

Needs neither numpy nor JAX; the formulas are in `kernels.parallelism`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Divided = Literal["rows", "filters", "channels", "layers", "operators"]
SPLITS: dict[Divided, Literal["rows", "weights"]] = {
    "rows": "rows",
    "filters": "weights",
    "channels": "weights",
}

# Divides samples among replicas, which other parallelisms divide further.
DATA = "data"


@dataclass(frozen=True)
class ParallelismFacts:
    """Facts of a parallelism inside a replica.

    divides: rows, filters or channels of each layer, or which PE runs which layers or operators.
    meaning, limit: descriptions for the catalogue. symbol, counts: its degree in formulas, and the
    meaning of that. terms: terms of time that depend on the degree or occur in each step of a
    pipeline. most_segments: the largest allowed number. alone: why it can only be combined with
    data parallelism; None if others are possible. table_iii: whether it is a row of Table III.
    """

    divides: Divided
    meaning: str
    limit: str
    symbol: str = "p2"
    counts: str = "PEs of a replica's group"
    terms: tuple[str, ...] = ()
    most_segments: int = 2**53
    alone: str | None = None
    table_iii: bool = False

    @property
    def segmented(self) -> bool:
        """True if PEs run different layers, through which samples pass in segments."""
        return self.splits is None

    @property
    def splits(self) -> Literal["rows", "weights"] | None:
        """The part of a layer that it divides; None if layers stay whole."""
        return SPLITS.get(self.divides)


# In the order of Table III.
KINDS: dict[str, ParallelismFacts] = {
    "spatial": ParallelismFacts(
        divides="rows",
        table_iii=True,
        meaning="divides height, width (and depth) of samples; halo exchange",
        limit="each factor of p <= the extents of the layers it splits",
        symbol="q_s",
        counts="PEs that divide the rows of a sample",
        terms=("halo_exchange", "split_gather", "sample_scatter", "log_files"),
    ),
    "pipeline": ParallelismFacts(
        divides="layers",
        table_iii=True,
        meaning="contiguous stages of layers, through which segments flow",
        limit="p <= G: convolutions, matrices; and poolings in Table III",
        symbol="q_p",
        counts="stages of a pipeline",
        terms=("pipeline_bubble", "pass_overhead", "point_to_point"),
    ),
    "filter": ParallelismFacts(
        divides="filters",
        table_iii=True,
        meaning="divides filters, or columns of linear layers; gathers outputs",
        limit="p <= min F",
        symbol="q_f",
        counts="PEs that divide filters",
        terms=("split_overhead", "layer_collectives"),
    ),
    "channel": ParallelismFacts(
        divides="channels",
        table_iii=True,
        meaning="divides channels, or rows of linear layers; reduces outputs",
        # The first layer has only the sample's channels, such as three of an image.
        limit="p <= min C (of a filter: C/g), from the second layer on",
        symbol="q_c",
        counts="PEs that divide channels",
        terms=("split_overhead", "layer_collectives"),
    ),
    "placement": ParallelismFacts(
        divides="operators",
        meaning="places operators on a node's PEs; segments flow through them",
        limit="p = 2 or 4 that divides a node, S <= 16; machine oracle",
        most_segments=16,
        alone="operators are placed whole",
    ),
}


# What a layout computes again, as bits of a column: Megatron's modules; whole blocks; all of a
# stage in square-root parts (Chen et al. 2016).
_RECOMPUTED = (
    *("core_attn", "mlp", "moe", "shared_experts", "layernorm", "moe_act", "mla_up_proj"),
    *("blocks", "full"),
)
RECOMPUTE: Mapping[str, int] = {name: 1 << bit for bit, name in enumerate(_RECOMPUTED)}
NODE = -1  # ranks of ZeRO: those of a node, as HSDP has it


@dataclass(frozen=True)
class LayoutColumn:
    """A degree or a setting of layouts of transformers: a column of integers.

    of: its parallelism, which has the same name if it is a degree. search: whether a search lists
    it with the degrees, has an axis for it, or shares one. word: the short one of tp8. also: other
    words, for messages. usual: the number where none is stated, and the least behind the word;
    most: the largest. always: the word is written even with the usual number. need: a column whose
    usual number leaves it without effect. meaning: of its parameter, or of a parallelism that has a
    limit here. words: of numbers.
    """

    name: str
    of: str
    search: Literal["degrees", "axis", "shared"]
    word: str
    also: tuple[str, ...] = ()
    usual: int = 1
    most: int = 2**40
    always: bool = False
    need: str = ""
    meaning: str = ""
    limit: str = ""
    words: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_degree(self) -> bool:
        """True for the degree of a parallelism."""
        return self.of == self.name


# In the order of parameters, of labels, and of ties. To add one: `kernels.parallelism`.
_COLUMNS = (
    LayoutColumn(
        *("tensor", "tensor", "degrees", "tp", ("tensor_parallel", "tmp")),
        always=True,
        meaning="transformers: columns, then rows of matrices",
        limit="t divides heads, KV heads (or is a multiple), MLPs",
    ),
    LayoutColumn(
        *("context", "context", "degrees", "cp"),
        meaning="transformers: positions of sequences; a ring of keys",
        limit="2 c divides the length of a sequence",
    ),
    LayoutColumn(
        *("expert", "expert", "shared", "ep"),
        meaning="transformers: routed experts",
        limit="e divides experts, and t c d PEs",
    ),
    LayoutColumn("pipeline", "pipeline", "degrees", "pp", ("stages",), always=True),
    LayoutColumn(DATA, DATA, "degrees", "dp", ("ddp", "replicas"), always=True),
    LayoutColumn(
        *("chunks", "pipeline", "degrees", "v", ("vpp", "vp", "virtual_stages")),
        meaning="chunks of a pipeline's stage, which are interleaved",
    ),
    LayoutColumn(
        *("micro", DATA, "shared", "mb", ("mbs", "micro_batch", "micro_batch_size")),
        always=True,
        meaning="sequences of a micro-batch of a layout; by default the whole batch, or a segment",
    ),
    LayoutColumn(
        *("recompute", "", "axis", "recompute", ("ac", "checkpoint", "activation_checkpointing")),
        *(0, sum(RECOMPUTE.values())),
        meaning="modules whose output the backward pass computes again, bits",
        words={"none": 0, **RECOMPUTE},
    ),
    LayoutColumn(
        *("sequence", "tensor", "shared", "sp", ("sequence_parallel",), 0, 1),
        need="tensor",
        meaning="whether tensor parallelism divides norms and dropout, too: sequence parallelism",
        words={"off": 0, "on": 1},
    ),
    LayoutColumn(
        *("zero", DATA, "axis", "zero", ("fsdp", "stage"), 0, 3),
        meaning="the stage of ZeRO of a layout",
    ),
    LayoutColumn(
        *("shard", DATA, "axis", "shard", (), 0),
        need="zero",
        meaning="ranks that ZeRO divides over; 0: all of them",
        words={"node": NODE},
    ),
    LayoutColumn(
        *("expert_tensor", "expert", "axis", "etp", (), 0),
        meaning="PEs that share each matrix of an expert; 0: as tensor",
    ),
    LayoutColumn("group", "pipeline", "axis", "group", usual=0, need="chunks"),
)
LAYOUT_COLUMNS = {row.name: row for row in _COLUMNS}
LAYOUT_PARTS = tuple(row.name for row in _COLUMNS if row.is_degree and row.name != DATA)
# Blocks answer for strategies that name one of these.
TRANSFORMERS = {row.name: row for row in _COLUMNS if row.limit}
# Their product and the replicas are the PEs; experts divide the same PEs again.
LAYOUT_DEGREES = tuple(n for n in LAYOUT_PARTS if LAYOUT_COLUMNS[n].search == "degrees")
# What such a strategy may say of its layout beside degrees.
LAYOUT_SETTINGS = tuple(row.name for row in _COLUMNS if row.meaning and not row.is_degree)
# Settings of a layout that have no effect beside one value of another column.
NEEDS = {row.name: (row.need, LAYOUT_COLUMNS[row.need].usual) for row in _COLUMNS if row.need}
# Columns with a number behind their word, in the order of writing: tp8 pp4 dp32 mb1 zero1.
WORDS = {
    row.word: row
    for part in (*LAYOUT_PARTS, DATA)
    for row in _COLUMNS
    if row.of == part and 0 not in row.words.values()
}

# Common strategies of transformers, with what they leave open; `layouts` are all of them.
_ALL = (*LAYOUT_PARTS, "chunks", "micro", "recompute", "sequence", "zero", "expert_tensor")
NAMED = {
    "layouts": f"{'+'.join([DATA, *LAYOUT_PARTS])}:{','.join(f'{name}=best' for name in _ALL)}",
    "megatron": "data+tensor+pipeline:tensor=best,pipeline=best,micro=best,sequence=on,zero=1",
    "fsdp": "data:micro=best,zero=3",
    "hsdp": "data:micro=best,zero=3,shard=node",
}

_SEGMENTED = tuple(name for name, kind in KINDS.items() if kind.segmented)
_OTHERS = tuple(name for name in KINDS if name not in _SEGMENTED)
# Inside a replica, from the outermost to those whose PEs are neighbours.
NESTING = (*_SEGMENTED, *_OTHERS)
# In the order in which strategies are written.
WRITTEN = (*_OTHERS, *TRANSFORMERS, *_SEGMENTED)

# Other names for them.
ALSO = {
    **{row.word: f"{row.name!r}" for row in _COLUMNS if row.is_degree},
    "tp": "'tensor', of transformers; 'filter' and 'channel' divide other layers",
    "ddp": "'data'",
    "gpipe": "'pipeline'",
    **dict.fromkeys(
        ("fsdp", "zero", "deepspeed"),
        "'data:zero=1', whose replicas divide the optimizer's states, 'data:zero=2' gradients too, "
        "'data:zero=3' weights too",
    ),
}


def explain_conflict(names: Sequence[str]) -> str | None:
    """Explain why parallelisms cannot share a replica; None if they can."""
    inside = [name for name in names if name != DATA]
    of_blocks = [name for name in inside if name in TRANSFORMERS]
    others = [name for name in inside if name not in LAYOUT_PARTS]
    if of_blocks:
        reason = f"{of_blocks[0]} divides transformers, {{}} other networks"
        return reason.format(others[0]) if others else None
    for name in inside:
        if KINDS[name].alone and len(inside) > 1:
            return f"{name} can only be combined with data: {KINDS[name].alone}"
    if len({KINDS[name].splits for name in inside}) < len(inside):
        return "a layer divided both ways is not modelled"
    return None
