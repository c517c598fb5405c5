"""Systems: processing elements (PEs), the levels of the network between them, and memory.

A ring of q PEs has the latency alpha [s] and bandwidth 1 / beta [B/s] of the smallest level that
spans q PEs. ParaDL (Kahira et al., HPDC 2021), section 4: alpha and beta are measured per level,
not derived. `paradl list systems NAME --yaml` writes the descriptions beside the values.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from paradl.grids.entries.connections import (
    Bytes,
    BytesPerSecond,
    Collectives,
    Connection,
    FlopPerSecond,
    Mesh,
    Number,
    Positive,
    Seconds,
    Watts,
)
from paradl.grids.entries.entry import Count, Entry, Name, Record, Sources, expect_one_of
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.precision import PRECISIONS, AnyPrecision, PrecisionName
from paradl.grids.entries.quantity import CAPACITY
from paradl.grids.entries.reserves import Reserve
from paradl.grids.entries.software import (
    SOFTWARE,
    AnySoftware,
    SoftwareFacts,
    Switches,
    list_switched,
    write_setting,
    write_settings,
    write_trained,
)
from paradl.grids.entries.yamltext import write_exactly
from paradl.grids.reading.errors import InputError, format_count, format_text, shorten
from paradl.grids.reading.units import has_unit

MOST_LEVELS = 16


# Below 1, sharing a link would make it faster.
Contended = Annotated[float, Field(ge=1.0), Number]


class TensorPeaks(Record):
    """Dense peaks in reduced precisions that a PE has.

    tf32, amp, bf16, fp8, mxfp8, nvfp4: FLOP/s; the last three for products of transformers alone.
    """

    tf32: FlopPerSecond | None = None
    amp: FlopPerSecond | None = None
    bf16: FlopPerSecond | None = None
    fp8: FlopPerSecond | None = None
    mxfp8: FlopPerSecond | None = None
    nvfp4: FlopPerSecond | None = None


class ProcessingElement(Record):
    """One PE: its speed and its memory."""

    name: Name = Field(description="The usual name of the PE. From: nvidia-smi -L.")
    # Systems with the same device share the profiles of models.
    device: Name = Field(description="The key of measured profiles of models, such as v100.")
    peak_flops: FlopPerSecond = Field(
        description="Peak in fp32, without tensor cores [FLOP/s]. From: the data sheet."
    )
    tensor_peaks: TensorPeaks | None = Field(
        default=None,
        description="Dense peaks in tf32, amp (fp16), bf16, fp8, mxfp8 and nvfp4 [FLOP/s], where "
        "the PE has them. Without tensor cores, amp is the plain fp16 peak. From: the data sheet, "
        "without sparsity.",
        examples=["{tf32: 156 TFLOP/s, amp: 312 TFLOP/s, bf16: 312 TFLOP/s}"],
    )
    efficiency: Annotated[float, Field(gt=0.0, le=1.0), Number] = Field(
        description="Share of the peak that layers reach, above 0 and at most 1, for oracle: "
        "paper. From: training on one PE, FLOPs divided by time."
    )
    memory_capacity: Bytes = Field(
        description="Usable memory: what the driver leaves to programs, not the label [B]. From: "
        "nvidia-smi, memory.total - memory.reserved."
    )
    memory_bandwidth: BytesPerSecond = Field(
        description="Memory bandwidth [B/s]. From: nvbandwidth (device_local_copy), the data sheet."
    )
    watts: Watts | None = Field(
        default=None,
        description="Power limit of the board [W]; with few, transformers' products are slower. "
        "From: the data sheet.",
        examples=["700 W"],
    )

    def list_tensor_peaks(self) -> dict[str, float]:
        """Return the PE's dense peaks by precision [FLOP/s]."""
        return self.tensor_peaks.model_dump(exclude_none=True) if self.tensor_peaks else {}


class Level(Connection):
    """A level of the network: the first is the node, the last is the whole system."""

    name: Name = Field(description="the level's name")
    pes: Count = Field(description="PEs that it spans")
    # 1 for a node, whose links are those that leave it.
    oversubscription: Contended = Field(
        default=1.0,
        description="bandwidth of its nodes' links over that of its own links to the next level",
    )
    # None, not empty: definitions of machines without measurements stay as they were.
    collectives: Collectives | None = Field(
        default=None, description="measured collectives; without them, rings at its bandwidth"
    )

    switch_latency: Seconds | None = Field(
        default=None,
        description="start-up of a collective that a node's switches sum and multicast (NVLink "
        "SHARP, from NVSwitch 3 on; NCCL's NVLS); by default its PEs do [s]",
    )
    shared: BytesPerSecond | None = Field(
        default=None,
        description="bandwidth that the PEs of a node together have, if their messages take one "
        "path, such as PCIe through host memory; by default each has its own [B/s]",
    )


# Kernels of tensor cores read channels last: nothing is converted. Channels first cost four times
# what is assumed if nothing is stated (`python -m benchmarks priors`).
CONVERSIONS = {"last": 0.0, "first": 4.0}
AnyChannels = Annotated[Literal["last", "first"], expect_one_of("channels", tuple(CONVERSIONS))]


class Contention(Record):
    """phi >= 1 of flows inside a group, a factor on beta."""

    halo: Contended = Field(default=1.0, description="for the halo exchange")
    split_gather: Contended = Field(
        default=1.0, description="for the gather at the end of a spatial split"
    )


class System(Entry):
    """A machine."""

    # Times of systems compare only if these are equal.
    COMPARED: ClassVar = ("precision", "software")
    # Keys that `NAME:key=value` may set, in the order of names.
    SETTINGS: ClassVar = (*COMPARED, "channels", "memory", *Switches.model_fields)

    name: Name = Field(description="The label in tables and cubes, unique to your machine.")
    title: str = Field(default="", description="The machine in words.")
    source: Sources = Field(
        default=(), description="Where the numbers come from; 'assumption: ...'."
    )
    pe: ProcessingElement = Field(description="A processing element (PE): one GPU.")
    precision: AnyPrecision = Field(
        default="fp32",
        description="Precision of training: fp32, tf32, amp or bf16; of transformers by layout, "
        "fp8, mxfp8 or nvfp4, too. It sets both peak and bytes.",
        examples=["fp32"],
    )
    software: AnySoftware = Field(
        default="ddp",
        description="How gradients are sent: ddp, in buckets during the backward pass; plain, all "
        "at once after it.",
        examples=["ddp"],
    )
    switches: Switches | None = Field(
        default=None,
        description="What the software does otherwise with transformers, such as overlaps.",
        examples=["{overlap_tensor: off}"],
    )
    channels: AnyChannels | None = Field(
        default=None,
        description="Whether channels are the last dimension of images, as tensor cores need it "
        "(last: NHWC, PyTorch's channels_last), or first (NCHW); by default not stated.",
        examples=["last"],
    )
    pes_per_node: Count = Field(description="PEs per node. From: nvidia-smi -L.")
    links_per_node: Count = Field(
        description="Network adapters per node for PEs. From: nvidia-smi topo -m, ibstat."
    )
    size: Count | None = Field(
        default=None,
        description="PEs of the whole machine; by default those of the last level.",
        examples=["1024"],
    )
    input_rate: Annotated[float, Positive, Number] | None = Field(
        default=None,
        description="Samples that the hosts of one node read, decode and feed [samples/s]; by "
        "default unlimited. From: the data loader alone, without training.",
        examples=["20000"],
    )
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=MOST_LEVELS)] = Field(
        description="Levels of the network, from the node up. From: nccl-tests' all_reduce_perf in "
        "a node; beyond it, ib_write_lat and ib_write_bw, or osu_latency and osu_bw."
    )
    # Halo and split-point exchanges use host memory if PEs cannot access each other's memory.
    staging: Connection | None = Field(
        default=None,
        description="The path of halos through host memory, if PEs cannot access each other's (MPI "
        "without GPUDirect); by default direct. From: osu_latency D D; nvbandwidth, or "
        "bandwidthTest.",
        examples=["{latency: 3 ms, bandwidth: 16 GB/s}"],
    )
    mesh: Mesh | None = Field(
        default=None,
        description="Links between the PEs of a node without a switch; by default all PEs are "
        "connected alike. From: nvidia-smi topo -m.",
        examples=["{bandwidth: 25 GB/s, links: [[0, 2], [2, 0]]}"],
    )
    contention: Contention = Field(
        default=Contention(),
        description="Factor by which flows inside a group slow each other down, at least 1.",
    )

    @property
    def peak(self) -> float:
        """Peak of a PE in the system's precision [FLOP/s]."""
        peak = _find_peak(self.pe, self.precision)
        assert peak is not None  # `_check_precision` refuses such a system
        return peak

    @property
    def software_facts(self) -> SoftwareFacts:
        """What is known of the system's software."""
        return SOFTWARE[self.software].switch(self.switches)

    def find_reserve(self, *, of_blocks: bool) -> Reserve:
        """Find by what memory exceeds formulas. of_blocks: that of a transformer's layouts."""
        if of_blocks:
            return self.software_facts.layouts.reserve
        prior = PARAMETERS["reserved"].prior
        assert prior is not None
        return Reserve(1.0, prior.spread[self.precision], prior.source, of_all=False)

    @property
    def memory(self) -> str:
        """Memory of a PE as names state it, with all its digits."""
        return write_exactly(self.pe.memory_capacity, "B")

    @property
    def most_pes(self) -> int:
        """Number of PEs of the whole machine."""
        return self.size or self.levels[-1].pes

    @property
    def measured_shares(self) -> frozenset[str]:
        """Parameters that measured collectives settle: what is reached of a bandwidth is all."""
        node, *others = [level.collectives or Collectives() for level in self.levels]
        shares = {"node_reduce"} if node.all_reduce else set[str]()
        if node.all_gather or node.reduce_scatter:
            shares.add("node_collective")
        if others and all(level.all_reduce for level in others):
            shares |= {"rail", "flow", "startup"}
        return frozenset(shares)

    @property
    def conversions(self) -> float:
        """Factor on `layout_passes`, whose prior is for runs that do not state their layout."""
        return 1.0 if self.channels is None else CONVERSIONS[self.channels]

    @property
    def trained(self) -> str:
        """The machine as a calibration names it: with precision, software and switches."""
        return write_trained(self.machine, self.precision, self.software, self.switches)

    @property
    def machine(self) -> str:
        """The name without settings, shared by all precisions of a machine."""
        return self._split_name()[0]

    def definition(self) -> dict[str, object]:
        """Return the entry as plain data, with settings only where they are stated."""
        unstated = [key for key in self.COMPARED if key not in self.model_fields_set]
        return {key: value for key, value in super().definition().items() if key not in unstated}

    def with_settings(self, settings: Mapping[str, str]) -> Self:
        """Return the machine with these settings, which its new name states.

        Settings it already has change nothing, so that a machine has one label. ValidationError:
        the machine cannot have them. InputError: `memory` is no quantity with a unit.
        """
        switched = {key: settings[key] for key in Switches.model_fields if key in settings}
        if 0 < len(switched) < len(settings):  # the software's own switches are not stated
            rest = {key: settings[key] for key in settings if key not in switched}
            return self.with_settings(rest).with_settings(switched)
        if "memory" in settings:
            settings = {**settings, "memory": _rewrite_memory(settings["memory"])}
        others = {key: to for key, to in settings.items() if to != self._read_setting(key)}
        if not others:
            return self
        machine, stated = self._split_name()
        stated |= others
        label = write_settings({key: stated[key] for key in self.SETTINGS if key in stated})
        changes: dict[str, object] = {"name": f"{machine}:{label}", **others}
        if "memory" in changes:
            pe = self.pe.model_dump(mode="json", exclude_none=True)
            changes["pe"] = pe | {"memory_capacity": changes.pop("memory")}
        if switched:
            kept = list_switched(self.switches)
            changes["switches"] = kept | {key: changes.pop(key) for key in others}
        return self.from_definition(self.definition() | changes)

    def _read_setting(self, key: str) -> str | None:
        """Read a setting as names write it."""
        owner = self.software_facts.layouts if key in Switches.model_fields else self
        setting: str | bool | None = getattr(owner, key)
        return None if setting is None else write_setting(setting)

    def _split_name(self) -> tuple[str, dict[str, str]]:
        machine, colon, label = self.name.rpartition(":")
        settings = [part.partition("=") for part in label.split(",")]
        if not colon or any(key not in self.SETTINGS for key, _, _ in settings):
            return self.name, {}
        return machine, {key: value for key, _, value in settings}

    @model_validator(mode="after")
    def _check_nesting(self) -> Self:
        """Check that levels hold more PEs than those inside them, and the last one all."""
        if self.levels[0].pes != self.pes_per_node:
            raise ValueError(
                f"levels: expected {shorten(self.levels[0].name)}, the first, to be the node and "
                f"have pes_per_node = {self.pes_per_node}, got {self.levels[0].pes}"
            )
        if self.mesh is not None and len(self.mesh.links) != self.pes_per_node:
            raise ValueError(
                f"mesh.links: expected {format_count(self.pes_per_node, 'row')}, one for each PE "
                f"of a node, got {len(self.mesh.links)}"
            )
        if any(level.switch_latency is not None for level in self.levels[self.mesh is None :]):
            raise ValueError("levels: expected switch_latency at a node with switches, the first")
        if any(level.shared is not None for level in self.levels[1:]):
            raise ValueError("levels: expected shared at the node, the first level")
        for inner, outer in pairwise(self.levels):
            if outer.pes <= inner.pes:
                raise ValueError(
                    f"levels: expected more PEs in {shorten(outer.name)} than the "
                    f"{inner.pes} of {shorten(inner.name)} inside it, got {outer.pes}; "
                    "order levels from the node up"
                )
        last = self.levels[-1]
        if self.most_pes > last.pes:
            raise ValueError(
                f"size: expected at most the {last.pes} PEs of {shorten(last.name)}, the last "
                f"level, which spans the whole machine, got {self.size}"
            )
        return self

    @model_validator(mode="after")
    def _check_switches(self) -> Self:
        switched = list_switched(self.switches)
        overlaps = [key for key, value in switched.items() if key.startswith("overlap_") and value]
        if overlaps and SOFTWARE[self.software].parameters.get("overlap") == 0:
            raise ValueError(
                f"switches: {self.software} hides nothing, and {overlaps[0]} is on; take software "
                "that can, such as megatron-2021"
            )
        return self

    @model_validator(mode="after")
    def _check_precision(self) -> Self:
        wanted, stated = self.precision, self._split_name()[1]
        if _find_peak(self.pe, wanted) is None:
            raise ValueError(
                f"precision: {format_text(self.pe.name)} has no peak for {wanted}, only for "
                f"{', '.join(name for name in PRECISIONS if _find_peak(self.pe, name))}; "
                f"where it has one, write 'tensor_peaks: {{{wanted}: ... TFLOP/s}}' under 'pe': "
                f"its dense peak in {PRECISIONS[wanted].peak}"
            )
        for key, value in stated.items():
            if value != self._read_setting(key):
                raise ValueError(
                    f"name: expected one that says {key}={self._read_setting(key)}, "
                    f"got {shorten(self.name)}"
                )
        return self


def _rewrite_memory(text: str) -> str:
    """Write a capacity as `System.memory` does. InputError: it is none, or lacks its unit."""
    number = CAPACITY.read(text, "memory")
    if not has_unit(text):
        raise InputError(
            "expected a unit", where="memory", advice="write it like '32 GB'", page="wrong-value"
        )
    return write_exactly(number, "B")


def _find_peak(pe: ProcessingElement, precision: PrecisionName) -> float | None:
    """Return the peak of a PE [FLOP/s]; None if it has none in this precision."""
    if precision == "fp32":
        return pe.peak_flops
    peak: float | None = getattr(pe.tensor_peaks, precision, None)
    return peak
