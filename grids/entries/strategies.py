"""The strategies, and how a user writes one: `data+filter:group=8`.

ParaDL, Table III and section 4.5: parallelisms inside a replica, data parallelism across the
replicas. Of several inside a replica each has a degree, as in
`data+spatial+pipeline:spatial=4,pipeline=8` (docs/machine.md). Placement is of Pal et al. 2019
(docs/placement.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from grids.entries.entry import split_settings
from grids.entries.parameters import PARAMETERS
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.names.parallelisms import ALSO, DATA, KINDS, WRITTEN, explain_conflict
from kernels.options import Schedule, Zero

_TABLE_III = [name for name, kind in KINDS.items() if kind.table_iii]
_OTHERS = [name for name in KINDS if name not in _TABLE_III]


def _list_hybrids(names: list[str]) -> dict[str, str]:
    return {f"data+{name}": f"{name} inside a replica, data across replicas" for name in names}


# Of one parallelism inside a replica at most; several may be combined.
MEANING = {
    "serial": "one PE",
    "data": "samples divided, weights replicated; gradients all-reduced",
    **{name: KINDS[name].meaning for name in _TABLE_III},
    **_list_hybrids(_TABLE_III),
    **{name: KINDS[name].meaning for name in _OTHERS},
    **_list_hybrids(_OTHERS),
}

# Those of Table III, which a spec has by default: to place operators takes seconds a model.
TABLE_III = ("serial", "data", *_TABLE_III, *_list_hybrids(_TABLE_III))

# In words, for the catalogue; `kernels/oracle/limits.py` computes them.
LIMIT = {
    "serial": "p = 1",
    "data": "p <= B",
    **{name: kind.limit for name, kind in KINDS.items()},
    **{f"data+{name}": f"p1 <= B, p2 as {name}" for name in KINDS},
}

DIMENSIONS = "dhw"  # depth, height, width: as everywhere, and as in the alphabet

# What may be left to each cell, in the order of choosing.
CHOICES = ("group", *WRITTEN, "segments")

Which = Literal["default", "all"]  # layers that a group splits: the oracle's choice, or every one
# By word, the default first.
LAYERS: dict[str, Which] = {"default": "default", "all": "all"}
ZERO: dict[str, Zero] = {"0": 0, "1": 1, "2": 2, "3": 3}
SCHEDULES: dict[str, Schedule] = {"gpipe": "gpipe", "1f1b": "1f1b"}
Chosen = TypeVar("Chosen")

Size = int | Literal["best"] | None  # None: left open


@dataclass(frozen=True)
class Strategy:
    """Parallelisms inside a replica, data parallelism across, and what the user fixed of them.

    group: PEs of a group, "best" for the fastest, None for a node's PEs (hybrids only). segments:
    "best" for the fastest power of two; None: of a pipeline, for the parameter of that name, of a
    placement, for a step that is not cut.
    dims: spatial dimensions to split, None for those with the least halo. layers: which layers are
    split, those of the oracle's conventions ("default") or "all" (s_l = 1 throughout).
    degrees: of several parallelisms those that are fixed, by name, in the order of writing. zero:
    the stage of ZeRO, among replicas. schedule: of a pipeline.
    """

    base: str
    group: Size = None
    segments: Size = None
    dims: str | None = None
    layers: Which = "default"
    degrees: tuple[tuple[str, Size], ...] = ()
    zero: Zero = 0
    schedule: Schedule = "gpipe"

    @property
    def parts(self) -> tuple[str, ...]:
        """The parallelisms inside a replica."""
        # "data" and "serial" are none: they leave the network whole.
        return tuple(name for name in self.base.split("+") if name in KINDS)

    @property
    def replicated(self) -> bool:
        """True if PEs divide into replicas."""
        return self.base.partition("+")[0] == DATA

    @property
    def serial(self) -> bool:
        """True if there is no parallelism at all."""
        return not self.replicated and not self.parts

    @property
    def hybrid(self) -> bool:
        """True if a group size is free."""
        return self.replicated and len(self.parts) == 1

    @property
    def several(self) -> bool:
        """True if several parallelisms divide a replica, each by a degree of its own."""
        return len(self.parts) > 1

    @property
    def segmented(self) -> bool:
        """True if samples pass in segments."""
        return any(KINDS[name].segmented for name in self.parts)

    @property
    def cut_by_axis(self) -> bool:
        """True if the parameter `segments` says into how many segments samples are cut."""
        # A placed group's step is cut where its strategy says so alone.
        return self.segmented and not self.placed

    @property
    def placed(self) -> bool:
        """True if operators are placed on PEs."""
        return any(KINDS[name].divides == "operators" for name in self.parts)

    @property
    def in_table_iii(self) -> bool:
        """True if Table III knows of all that it says."""
        return not (self.placed or self.zero or self.schedule != "gpipe")

    def splits(self, what: Literal["rows", "weights"]) -> bool:
        """True if rows, or weights, of layers are divided."""
        return any(KINDS[name].splits == what for name in self.parts)

    @property
    def most_segments(self) -> int:
        """The largest number of segments that may be asked for."""
        return min((KINDS[name].most_segments for name in self.parts), default=1)

    @property
    def choices(self) -> tuple[str, ...]:
        """Settings that each cell chooses for itself."""
        sizes = self._sizes
        return tuple(name for name in CHOICES if sizes.get(name) == "best")

    @property
    def _sizes(self) -> dict[str, Size]:
        return {"group": self.group, **dict(self.degrees), "segments": self.segments}

    def settle(self, chosen: Mapping[str, int]) -> "Strategy":
        """The strategy with what was chosen in the place of each `best`."""
        sizes = {
            name: chosen[name] if size == "best" else size for name, size in self._sizes.items()
        }
        return replace(
            self,
            group=sizes["group"],
            segments=sizes["segments"],
            degrees=tuple((name, sizes[name]) for name, _ in self.degrees),
        )

    @property
    def label(self) -> str:
        """As the user writes it, settings in a fixed order: labels are coordinates of the cube."""
        # Defaults are left out, so that two ways to write one strategy are known for twins. All
        # layers are `split=all`, and `layers=all` only where `split` names dimensions.
        layers = None if self.layers == "default" else self.layers
        settings = {
            **self._sizes,
            "split": self.dims or layers,
            "layers": layers if self.dims else None,
            "zero": self.zero or None,
            "schedule": None if self.schedule == "gpipe" else self.schedule,
        }
        written = ",".join(f"{key}={value}" for key, value in settings.items() if value is not None)
        return f"{self.base}:{written}" if written else self.base


def parse_strategy(text: object, where: str = "") -> Strategy:
    """The strategy of `base[:key=value,...]`, such as `data+filter:group=8`.

    InputError names what is unknown, cannot be combined or does not belong.
    """
    if not isinstance(text, str):
        raise InputError(f"expected a strategy's name, got {shorten(text)}", where=where)
    base, _, rest = (part.strip() for part in text.partition(":"))
    base = _order_parts(base, where)
    whole = f"{where}: {shorten(text)}" if where else shorten(text)
    settings = split_settings(rest, whole, "data+filter:group=8")
    return _make_strategy(base, settings, where)


def _order_parts(base: str, where: str) -> str:
    """`data+filter` of `filter+data`: which of them is inside is no choice."""
    names = [part.strip() for part in base.split("+")]
    ordered = [name for name in (DATA, *WRITTEN) if name in names]
    if base in MEANING or sorted(names) != sorted(ordered):
        if base not in MEANING:
            raise InputError(f"unknown strategy {shorten(base)}", where=where, advice=_advise(base))
        return base
    conflict = explain_conflict(ordered)
    if conflict is not None:
        advice = "'paradl strategies' lists what can be combined"
        raise InputError(f"no strategy {shorten(base)}: {conflict}", where=where, advice=advice)
    return "+".join(ordered)


def _advise(base: str) -> str:
    """Advice on a name that is no strategy's."""
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
    sizes = {name: _read_choice(name, settings.get(name), where) for name in CHOICES}
    strategy = Strategy(
        base,
        group=sizes["group"],
        segments=sizes["segments"],
        dims=_read_dims(dims, where),
        layers=_read_one("layers", layers, LAYERS, where),
        degrees=tuple((name, sizes[name]) for name in bare.parts if sizes[name] is not None)
        if bare.several
        else (),
        zero=_read_one("zero", settings.get("zero"), ZERO, where),
        schedule=_read_one("schedule", settings.get("schedule"), SCHEDULES, where),
    )
    _expect_segments(strategy, where)
    return strategy


def _expect_segments(strategy: Strategy, where: str) -> None:
    """InputError: a placement in more segments than are searched."""
    most, segments = strategy.most_segments, strategy.segments
    if isinstance(segments, int) and segments > most:
        raise InputError(
            f"segments: expected at most {most}, got {segments:,}",
            where=where,
            advice="operators are not placed for more; write 'segments=best' for the fastest",
        )


def _list_settings(strategy: Strategy) -> list[str]:
    """The keys that a user may set of a strategy."""
    sizes = ["group"] if strategy.hybrid else list(strategy.parts) if strategy.several else []
    cut = ["segments"] if strategy.segmented else []
    split = strategy.splits("rows") or strategy.splits("weights")
    more = ["split", "layers"] if split else []
    more += ["zero"] if strategy.replicated and not strategy.placed else []
    staged = any(KINDS[name].divides == "layers" for name in strategy.parts)
    return [*sizes, *cut, *more, *(["schedule"] if staged else [])]


def _read_choice(name: str, value: str | None, where: str) -> Size:
    """A setting's whole number, within the parameter's bounds, or `best`; None: left open."""
    if value is None:
        return None
    if value == "best":
        return "best"
    return int(PARAMETERS[name].read(value, f"{where} {name}".strip()))


def _read_one(name: str, value: str | None, known: Mapping[str, Chosen], where: str) -> Chosen:
    """The value that a word stands for, the first one by default."""
    word = next(iter(known)) if value is None else value
    if word not in known:
        raise InputError.unknown(name, word, known, where=where)
    return known[word]


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
