"""The strategies, and how a user writes one: `data+filter:group=8`.

ParaDL, Table III and section 4.5: a group strategy inside a replica, data parallelism across the
replicas. Placement is of Pal et al. 2019 (docs/placement.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from grids.entries.entry import split_settings
from grids.entries.parameters import PARAMETERS
from grids.reading.errors import InputError, shorten, suggest_name

GroupStrategy = Literal["none", "spatial", "pipeline", "filter", "channel", "placement"]

MEANING = {
    "serial": "one PE",
    "data": "samples divided, weights replicated; gradients all-reduced",
    "spatial": "height, width (and depth) of every sample divided; halo exchange",
    "pipeline": "contiguous stages of layers; segments flow through them",
    "filter": "filters, or columns of linear layers, divided; outputs gathered",
    "channel": "channels, or rows of linear layers, divided; outputs reduced",
    "data+spatial": "spatial inside a replica, data across replicas",
    "data+pipeline": "pipeline inside a replica, data across replicas",
    "data+filter": "filter inside a replica, data across replicas",
    "data+channel": "channel inside a replica, data across replicas",
    "placement": "operators on PEs of a node, messages between them; in segments",
    "data+placement": "placement inside a replica, data across replicas",
}

# Those of Table III, which a spec has by default: to place operators takes seconds a model.
TABLE_III = tuple(name for name in MEANING if "placement" not in name)

# In words, for the catalogue; `kernels/oracle/limits.py` computes them.
LIMIT = {
    "serial": "p = 1",
    "data": "p <= B",
    "spatial": "each factor of p <= the extents of the layers it splits",
    "pipeline": "p <= G: convolutions, poolings, matrices (machine: no poolings)",
    "filter": "p <= min F",
    # The first layer has the sample's channels, three of an image: it stays whole.
    "channel": "p <= min C (of a filter: C/g), from the second layer on",
    "data+spatial": "p1 <= B, p2 as spatial",
    "data+pipeline": "p1 <= B, p2 as pipeline",
    "data+filter": "p1 <= B, p2 as filter",
    "data+channel": "p1 <= B, p2 as channel",
    "placement": "p = 2 or 4 that divides a node, S <= 16; with the machine oracle",
    "data+placement": "p1 <= B, p2 as placement",
}

# What others call them.
ALSO = {
    "tensor": "'filter' or 'channel', which divide the tensors of layers",
    "tp": "'filter' or 'channel', which divide the tensors of layers",
    "dp": "'data'",
    "ddp": "'data'",
    "pp": "'pipeline'",
    "gpipe": "'pipeline'",
    **dict.fromkeys(
        ("fsdp", "zero", "deepspeed"),
        "'data' with weights, gradients or optimizer states sharded across replicas; sharding is "
        "not modelled yet: 'data' keeps all of them on every PE",
    ),
    "megatron": "'filter' and 'channel' in turn, so that one exchange serves two layers; the pair "
    "is not modelled yet: 'data+filter' and 'data+channel' exchange after each layer",
}

# Of a placed group's step. More are not searched: all layers in 16 take seconds to search.
MOST_SEGMENTS = 16

DIMENSIONS = "dhw"  # depth, height, width: as everywhere, and as in the alphabet

Choice = Literal["group", "segments"]  # what may be left to each cell, in the order of choosing
CHOICES: tuple[Choice, ...] = get_args(Choice)

Which = Literal["default", "all"]  # layers that a group splits: the oracle's choice, or every one


@dataclass(frozen=True)
class Strategy:
    """A group strategy, whether data parallelism goes across, and what the user fixed of it.

    group: PEs of a group, "best" for the fastest, None for a node's PEs (hybrids only). segments:
    "best" for the fastest power of two; None: of a pipeline, for the parameter of that name, of a
    placement, for a step that is not cut.
    dims: spatial dimensions to split, None for those with the least halo. layers: which layers are
    split, those of the oracle's conventions ("default") or "all" (s_l = 1 throughout).
    """

    base: str
    group: int | Literal["best"] | None = None
    segments: int | Literal["best"] | None = None
    dims: str | None = None
    layers: Which = "default"

    @property
    def group_strategy(self) -> GroupStrategy:
        """The strategy inside a replica."""
        # "data" and "serial" are no strategies inside a replica: what is left of them is "none".
        inner = self.base.rpartition("+")[2]
        return next((each for each in get_args(GroupStrategy) if each == inner), "none")

    @property
    def replicated(self) -> bool:
        """Whether PEs divide into replicas."""
        return self.base.startswith("data")

    @property
    def serial(self) -> bool:
        """Whether there is no parallelism at all."""
        return not self.replicated and self.group_strategy == "none"

    @property
    def hybrid(self) -> bool:
        """Whether a group size is free."""
        return "+" in self.base

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What each cell chooses for itself."""
        return tuple(name for name in CHOICES if getattr(self, name) == "best")

    def settle(self, chosen: Mapping[str, int]) -> "Strategy":
        """The strategy with what was chosen in the place of each `best`."""
        return replace(
            self,
            group=chosen["group"] if self.group == "best" else self.group,
            segments=chosen["segments"] if self.segments == "best" else self.segments,
        )

    @property
    def label(self) -> str:
        """As the user writes it, settings in a fixed order: labels are coordinates of the cube."""
        # Defaults are left out, so that two ways to write one strategy are known for twins. All
        # layers are `split=all`, and `layers=all` only where `split` names dimensions.
        layers = None if self.layers == "default" else self.layers
        settings = {
            "group": self.group,
            "segments": self.segments,
            "split": self.dims or layers,
            "layers": layers if self.dims else None,
        }
        written = ",".join(f"{key}={value}" for key, value in settings.items() if value is not None)
        return f"{self.base}:{written}" if written else self.base


def is_placed(text: str) -> bool:
    """Whether it is a strategy whose operators are placed."""
    return parse_strategy(text).group_strategy == "placement"


def parse_strategy(text: object, where: str = "") -> Strategy:
    """The strategy of `base[:key=value,...]`, such as `data+filter:group=8`.

    InputError names what is unknown or does not belong.
    """
    if not isinstance(text, str):
        raise InputError(f"expected a strategy's name, got {shorten(text)}", where=where)
    base, _, rest = (part.strip() for part in text.partition(":"))
    base = _put_data_first(base)
    if base not in MEANING:
        raise InputError(f"unknown strategy {shorten(base)}", where=where, advice=_advise(base))
    whole = f"{where}: {shorten(text)}" if where else shorten(text)
    settings = split_settings(rest, whole, "data+filter:group=8")
    return _make_strategy(base, settings, where)


def _put_data_first(base: str) -> str:
    """`data+filter` of `filter+data`: which of the two is inside is no choice."""
    parts = [part.strip() for part in base.split("+")]
    turned = "+".join(reversed(parts))
    return turned if len(parts) == 2 and turned in MEANING else base


def _advise(base: str) -> str:
    """What is meant by a name that is no strategy's."""
    # Stages and versions are written behind a name: zero-3, fsdp2.
    parts = (part.strip().rstrip("-123") for part in base.casefold().split("+"))
    inner = next((part for part in parts if part in ALSO), None)
    return suggest_name(base, MEANING) if inner is None else f"{inner} is {ALSO[inner]}"


def _make_strategy(base: str, settings: dict[str, str], where: str) -> Strategy:
    """The strategy of `base` and the settings behind it, as written; each has to belong to it."""
    bare = Strategy(base)
    names = _list_settings(bare)
    for key in settings:
        if key not in names:
            advice = suggest_name(key, names) if names else f"{base} has no settings"
            raise InputError(
                f"strategy {shorten(base)} has no setting {shorten(key)}",
                where=where,
                advice=advice,
            )
    layers, dims = settings.get("layers"), settings.get("split")
    if dims == "all":  # `split=all` is every layer, in the dimensions with the least halo
        layers, dims = "all", None
    strategy = Strategy(
        base,
        group=_read_choice("group", settings.get("group"), where),
        segments=_read_choice("segments", settings.get("segments"), where),
        dims=_read_dims(dims, where),
        layers=_read_layers(layers, where),
    )
    _expect_segments(strategy, where)
    return strategy


def _expect_segments(strategy: Strategy, where: str) -> None:
    """InputError: a placement in more segments than are searched."""
    placed, segments = strategy.group_strategy == "placement", strategy.segments
    if placed and isinstance(segments, int) and segments > MOST_SEGMENTS:
        raise InputError(
            f"segments: expected at most {MOST_SEGMENTS}, got {segments:,}",
            where=where,
            advice="operators are not placed for more; write 'segments=best' for the fastest",
        )


def _list_settings(strategy: Strategy) -> list[str]:
    """The keys that a user may set of a strategy."""
    group = ["group"] if strategy.hybrid else []
    match strategy.group_strategy:
        case "pipeline" | "placement":
            return [*group, "segments"]
        case "none":
            return group
    return [*group, "split", "layers"]


def _read_choice(name: Choice, value: str | None, where: str) -> int | Literal["best"] | None:
    """The whole number of a setting, within the bounds of the parameter of that name, or `best`.

    None where the user leaves it open.
    """
    if value is None:
        return None
    if value == "best":
        return "best"
    return int(PARAMETERS[name].read(value, f"{where} {name}".strip()))


def _read_dims(value: str | None, where: str) -> str | None:
    """The spatial dimensions to split, in the order d, h, w; None for those with the least halo."""
    if value is None or value == "auto":
        return None
    if not value or set(value) - set(DIMENSIONS) or len(set(value)) != len(value):
        raise InputError(
            f"split: expected dimensions out of {DIMENSIONS!r}, or 'all' layers, "
            f"got {shorten(value)}",
            where=where,
            advice="write it like 'spatial:split=hw'",
        )
    return "".join(sorted(value))  # "wh" and "hw" are one strategy, and one label


def _read_layers(value: str | None, where: str) -> Which:
    """Which layers a group splits."""
    if value not in (None, "default", "all"):
        raise InputError(f"layers: expected 'default' or 'all', got {shorten(value)}", where=where)
    return "all" if value == "all" else "default"
