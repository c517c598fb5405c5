"""The strategies, and how a user writes one: `data+filter:group=8`.

ParaDL, Table III and section 4.5: parallelisms inside a replica, data parallelism across the
replicas. Of several inside a replica each has a degree, as in
`data+spatial+pipeline:spatial=4,pipeline=8` (docs/machine.md). Placement is of Pal et al. 2019
(docs/placement.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from paradl.grids.entries.entry import split_settings
from paradl.grids.entries.layout_words import is_layout, parse_layout, respell, write_layout
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.strategy_words import (
    CHOICES,
    LAYERS,
    LAYOUT_SCHEDULES,
    OF_ALL,
    RECOMPUTED,
    SCHEDULES,
    ZERO,
    Size,
    Which,
    expect_replicas,
    expect_settings,
    order_parts,
    read_dims,
    read_one,
)
from paradl.grids.reading.errors import InputError, shorten
from paradl.kernels.names.parallelisms import (
    DATA,
    KINDS,
    LAYOUT_COLUMNS,
    LAYOUT_SETTINGS,
    NAMED,
    NEEDS,
    TRANSFORMERS,
    WRITTEN,
)
from paradl.kernels.options import Schedule, Zero


@dataclass(frozen=True)
class Strategy:
    """Parallelisms inside a replica, data parallelism across, and what the user fixed of them.

    group: PEs of a group, "best" for the fastest, None for a node's PEs (hybrids only). segments:
    "best" for the fastest power of two; None: of a pipeline, for the parameter of that name, of a
    placement, for a step that is not cut. dims: spatial dimensions to split, None for those with
    the least halo. layers: which layers are split, those of the oracle's conventions ("default") or
    "all" (s_l = 1 throughout). degrees: of several parallelisms those that are fixed, by name, in
    the order of writing; of a layout's own words all settings, as numbers. zero: the stage of ZeRO,
    among replicas; None is that of the parameter. shard: replicas that it divides over, NODE for
    those of a node, 0 for all. schedule, chunks: of a pipeline, and of each stage. of_blocks:
    whether it is a layout of a network with blocks. micro: samples of each of a flush's passes;
    None: all, or a segment. recompute: what is computed again, of `layernorm` all that is cheap;
    None is that of the run. replicas: their number, None for what other degrees leave of the PEs.
    written: its label, if it is a layout in short words, or one that `undo_layout`
    undid.
    """

    base: str
    group: Size = None
    segments: Size = None
    dims: str | None = None
    layers: Which = "default"
    degrees: tuple[tuple[str, Size], ...] = ()
    zero: Zero | None = None
    shard: int = 0
    schedule: Schedule = "gpipe"
    chunks: int = 1
    of_blocks: bool = False
    micro: int | None = None
    recompute: str | None = None
    replicas: int | None = None
    written: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The parallelisms inside a replica."""
        # "data" and "serial" are none: they leave the network whole.
        return tuple(name for name in self.base.split("+") if name in WRITTEN)

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
        return self.replicated and len(self.parts) == 1 and not self.in_layout_words

    @property
    def in_layout_words(self) -> bool:
        """True if only layouts know these words, and not if `lay_out` made it one."""
        return _is_layout(self.base, dict(self.degrees) | {"schedule": self.schedule})

    @property
    def divides_layers(self) -> bool:
        """True if it divides layers themselves, or places operators, and so leaves no block."""
        return any(KINDS[name].divides != "layers" for name in self.parts if name in KINDS)

    @property
    def several(self) -> bool:
        """True if several parallelisms divide a replica, each by a degree of its own."""
        return len(self._kinds) > 1

    @property
    def segmented(self) -> bool:
        """True if samples pass in segments."""
        return any(KINDS[name].segmented for name in self._kinds)

    @property
    def cut_by_axis(self) -> bool:
        """True if the parameter `segments` says into how many segments samples are cut."""
        # A placed group's step is cut where its strategy says so alone.
        is_stated = self.micro is not None or "micro" in dict(self.degrees)
        return self.staged and not is_stated

    @property
    def staged(self) -> bool:
        """True if stages of whole layers follow each other."""
        return any(KINDS[name].divides == "layers" for name in self.parts if name in KINDS)

    @property
    def placed(self) -> bool:
        """True if operators are placed on PEs."""
        return any(KINDS[name].divides == "operators" for name in self._kinds)

    @property
    def _kinds(self) -> tuple[str, ...]:
        """What divides the layers of a replica, which layouts do otherwise."""
        return () if self.of_blocks else self.parts

    @property
    def in_table_iii(self) -> bool:
        """True if Table III knows of all that it says."""
        return not (self.of_blocks or self.placed or self.zero or self.schedule != "gpipe")

    def splits(self, what: Literal["rows", "weights"]) -> bool:
        """True if rows, or weights, of layers are divided."""
        return any(KINDS[name].splits == what for name in self._kinds)

    @property
    def most_segments(self) -> int:
        """The largest number of segments that may be asked for."""
        return min((KINDS[name].most_segments for name in self._kinds), default=1)

    @property
    def choices(self) -> tuple[str, ...]:
        """Settings that each cell chooses for itself; layouts have chosen before any case."""
        sizes = {} if self.of_blocks else self._sizes
        return tuple(name for name in CHOICES if sizes.get(name) == "best")

    @property
    def searched(self) -> bool:
        """True if each cell takes the best of all its layouts, found before any case is built."""
        return "best" in self.stated.values() and not self.choices

    @property
    def _sizes(self) -> dict[str, Size]:
        return {"group": self.group, **dict(self.degrees), "segments": self.segments}

    @property
    def stated(self) -> dict[str, Size]:
        """Settings of a layout that it does not leave open, by the names of columns."""
        micro: Size = "best" if self.segments == "best" else None
        words: dict[str, Size] = {"pipeline": self.group, "micro": micro, "zero": self.zero}
        given = {name: size for name, size in words.items() if size is not None}
        return given | dict(self.degrees)

    def complete(self, sizes: Mapping[str, Size]) -> tuple[tuple[str, Size], ...]:
        """The settings of a layout, with these where it leaves them open."""
        stated = {**sizes, **dict(self.degrees)}
        return tuple((name, stated[name]) for name in self.settings if name in stated)

    @property
    def settings(self) -> tuple[str, ...]:
        """What a layout may say, in the order of writing."""
        return (*self.parts, *LAYOUT_SETTINGS)

    def settle(self, chosen: Mapping[str, int]) -> "Strategy":
        """The strategy with what was chosen in the place of each `best`; a layout as it is."""
        sizes = self._sizes | {name: chosen[name] for name in self.choices}
        return replace(
            self,
            group=sizes["group"],
            segments=sizes["segments"],
            degrees=tuple((name, sizes[name]) for name, _ in self.degrees),
        )

    def lay_out(self) -> "Strategy":
        """The layout that it is of a network with blocks; one that divides a layer, as it is."""
        if self.of_blocks or self.divides_layers:
            return self
        return replace(self, of_blocks=True, schedule=self.schedule if self.parts else "1f1b")

    @property
    def needs_blocks(self) -> bool:
        """True if it says what networks without blocks do not have."""
        return self.undo_layout().of_blocks

    def undo_layout(self) -> "Strategy":
        """The strategy that it is of a network without blocks; itself if it divides blocks."""
        if not self.of_blocks:
            return self
        stated = dict(self.degrees)
        numbers = {name: row.usual for name, row in LAYOUT_COLUMNS.items()} | stated
        divides_blocks = any(
            numbers[name] != row.usual for name, row in LAYOUT_COLUMNS.items() if name not in OF_ALL
        )
        known = {name: number for name, number in numbers.items() if isinstance(number, int)}
        is_open = not {*self.parts} <= {*stated} or len(known) < len(numbers)
        is_known = numbers["recompute"] in RECOMPUTED and self.schedule in SCHEDULES
        if divides_blocks or is_open or not is_known:
            return self
        stages, micro = known["pipeline"], stated.get("micro")
        staged = stages != 1
        return Strategy(
            base=f"{DATA}+pipeline" if staged else DATA,
            group=stages if staged else None,
            zero=ZERO[str(stated["zero"])] if "zero" in stated else None,
            shard=known["shard"],
            schedule=self.schedule if staged else "gpipe",
            chunks=known["chunks"],
            micro=int(micro) if micro else None,
            recompute=RECOMPUTED[known["recompute"]] if "recompute" in stated else None,
            replicas=self.replicas,
            written=self.label,
        )

    def find_zero(self, parameters: Mapping[str, float]) -> Zero:
        """The stage of ZeRO of a strategy that divides layers: its own, or the parameter's."""
        if self.zero is not None or not self.takes_zero:
            return self.zero or 0
        return ZERO[f"{parameters.get('zero', 0):g}"]

    @property
    def takes_zero(self) -> bool:
        """True if replicas can share what they hold."""
        return self.replicated and not self.placed

    @property
    def label(self) -> str:
        """As the user writes it, settings in a fixed order: labels are coordinates of the cube."""
        # Defaults that no parameter changes are left out, so that two ways to write one strategy
        # are known for twins. All layers are `split=all`, and `layers=all` only where `split` names
        # dimensions.
        if self.written:
            return self.written
        layers = None if self.layers == "default" else self.layers
        usual = next(iter(LAYOUT_SCHEDULES if self.in_layout_words else SCHEDULES))
        settings = {
            **{name: _write_size(name, size) for name, size in self._sizes.items()},
            "split": self.dims or layers,
            "layers": layers if self.dims else None,
            "zero": self._sizes.get("zero", self.zero),
            "schedule": self.schedule if self.parts and self.schedule != usual else None,
        }
        written = ",".join(f"{key}={value}" for key, value in settings.items() if value is not None)
        return f"{self.base}:{written}" if written else self.base


def parse_strategy(text: object, where: str = "") -> Strategy:
    """The strategy of `base[:key=value,...]`, such as `data+filter:group=8`.

    InputError names what is unknown, cannot be combined or does not belong.
    """
    if not isinstance(text, str):
        raise InputError(f"expected a strategy's name, got {shorten(text)}", where=where)
    if is_layout(text):
        return _read_layout(text, where)
    if words := respell(text):
        what = f"unknown strategy {shorten(text)}"
        raise InputError(what, where=where, advice=f"write {words!r}")
    base, _, rest = (part.strip() for part in text.partition(":"))
    whole = f"{where}: {shorten(text)}" if where else shorten(text)
    settings = split_settings(rest, whole, "data+filter:group=8")
    if base in NAMED:
        base, _, usual = NAMED[base].partition(":")
        idle = {name for name, (need, none) in NEEDS.items() if settings.get(need) == str(none)}
        shared = split_settings(usual, whole, "")
        settings = {name: shared[name] for name in shared if name not in idle} | settings
    base = order_parts(base, where)
    make = _make_layout if _is_layout(base, settings) else _make_strategy
    return make(base, settings, where)


def _read_layout(text: str, where: str) -> Strategy:
    """The strategy of a layout in short words, `tp8 pp4 dp2 mb1`, which states all columns."""
    columns, schedule = parse_layout(text, where)
    parts = [name for name in WRITTEN if columns.get(name, 1) > 1]
    return Strategy(
        "+".join([DATA, *parts]),
        degrees=tuple((name, n) for name, n in columns.items() if name != DATA),
        schedule=schedule,
        of_blocks=True,
        replicas=columns.get(DATA),
        written=write_layout(columns, schedule),
    )


def _is_layout(base: str, settings: Mapping[str, object]) -> bool:
    """True if layouts answer: it names a parallelism, a setting or a schedule of theirs alone."""
    parts = [name for name in base.split("+") if name != DATA]
    if {*parts} & {*TRANSFORMERS}:
        return True
    staged = all(name in KINDS and KINDS[name].divides == "layers" for name in parts)
    # ZeRO alone does not say so, which other networks have, too.
    is_named = bool({*settings} & {*LAYOUT_SETTINGS} - {"zero"})
    is_scheduled = settings.get("schedule") in LAYOUT_SCHEDULES.keys() - SCHEDULES.keys()
    return staged and (is_named or is_scheduled)


def _make_layout(base: str, settings: dict[str, str], where: str) -> Strategy:
    expect_replicas(base, where)
    bare = Strategy(base, of_blocks=True)
    staged = ("schedule",) if bare.staged else ()
    if len(bare.parts) == 1 and "group" in settings:
        settings = {bare.parts[0]: settings["group"]} | settings
        del settings["group"]
    if "segments" in settings:
        what = f"strategy {shorten(base)} has no setting 'segments' in words of layouts"
        raise InputError(what, where=where, advice="write 'micro=1' in its place")
    expect_settings(base, settings, (*bare.settings, *staged), where)
    sizes = {name: _read_choice(name, settings.get(name), where) for name in bare.settings}
    return replace(
        bare,
        degrees=tuple((name, size) for name, size in sizes.items() if size is not None),
        schedule=read_one("schedule", settings.get("schedule"), LAYOUT_SCHEDULES, where),
    )


def _make_strategy(base: str, settings: dict[str, str], where: str) -> Strategy:
    bare = Strategy(base)
    names = _list_settings(bare)
    # The degree of a hybrid's only parallelism is the size of its groups.
    if bare.hybrid and "group" not in settings:
        settings = {"group" if name in bare.parts else name: settings[name] for name in settings}
    expect_settings(base, settings, names, where)
    layers, dims = settings.get("layers"), settings.get("split")
    if dims == "all":  # `split=all` is every layer, in the dimensions with the least halo
        layers, dims = "all", None
    sizes = {name: _read_choice(name, settings.get(name), where) for name in CHOICES}
    strategy = Strategy(
        base,
        group=sizes["group"],
        segments=sizes["segments"],
        dims=read_dims(dims, where),
        layers=read_one("layers", layers, LAYERS, where),
        degrees=tuple((name, sizes[name]) for name in bare.parts if sizes[name] is not None)
        if bare.several
        else (),
        zero=read_one("zero", settings["zero"], ZERO, where) if "zero" in settings else None,
        schedule=read_one("schedule", settings.get("schedule"), SCHEDULES, where),
    )
    most, segments = strategy.most_segments, strategy.segments
    if isinstance(segments, int) and segments > most:
        what = f"segments: expected at most {most}, got {segments:,}"
        raise InputError(what, where=where, advice="write 'segments=best' for the fastest")
    return strategy


def _list_settings(strategy: Strategy) -> list[str]:
    sizes = ["group"] if strategy.hybrid else list(strategy.parts) if strategy.several else []
    cut = ["segments"] if strategy.segmented else []
    split = strategy.splits("rows") or strategy.splits("weights")
    more = ["split", "layers"] if split else []
    more += ["zero"] if strategy.takes_zero else []
    return [*sizes, *cut, *more, *(["schedule"] if strategy.staged else [])]


def _read_choice(name: str, value: str | None, where: str) -> Size:
    """A setting's whole number, within the parameter's bounds, or `best`; None: left open."""
    if value is None:
        return None
    if value == "best":
        return "best"
    return int(PARAMETERS[name].read(value, f"{where} {name}".strip()))


def _write_size(name: str, size: Size) -> str | None:
    """A setting's number as a user writes it, such as `recompute=full`; None: left out."""
    return str(PARAMETERS[name].write(size)) if isinstance(size, int) else size
