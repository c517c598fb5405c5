"""A machine from logs: what they state, what fits them, and what the user has to add.

Every value has a tag: `measured` (a log states it), `fitted` (of a log's rows), `stated` (an
option), `data sheet` (a machine of the catalogue with the same GPU), or `assumed`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from paradl.grids.entries.connections import Connection
from paradl.grids.entries.systems import Level, ProcessingElement, System
from paradl.grids.entries.yamltext import format_entry
from paradl.grids.reading.errors import InputError, format_count
from paradl.grids.reading.textfile import write_text
from paradl.grids.reading.units import format_quantity
from paradl.sweep.answers.types.catalogue import RatedRun
from paradl.sweep.importing.machines.devices import (
    Device,
    Topology,
    expect_one_device,
    find_machine,
    with_memory,
)
from paradl.sweep.importing.machines.fit import (
    MISFIT,
    Fitted,
    LineFitter,
    find_least,
    lower_latency,
    note_few,
    rate_run,
    with_lines,
)
from paradl.sweep.importing.machines.measurements import STEPS, Measurement

# Whose lines stand for messages from PE to PE, the first that there is. An all-reduce comes last:
# switches that reduce carry more than a link.
AS_MESSAGES = ("all_gather", "reduce_scatter", "all_to_all", "all_reduce")
# Keys of a machine that no file of these tools states.
COPIED = ("software", "switches", "channels", "input_rate", "staging", "contention")
# Stands in for a level until it is fitted.
BLANK = Connection(latency=1e-6, bandwidth=1e9)
# [B] Shorter messages do not fill a link, however many are under way; ib_write_bw's usual size.
STREAM = 2.0**16
MISSING = (
    "the GPU's peaks and memory: --like SYSTEM (see paradl list systems), or the CSV of "
    "nvidia-smi --query-gpu=name,memory.total --format=csv",
    "PEs per node: --pes-per-node",
    "network adapters per node: --links-per-node, or NCCL's topology",
)

HEAD = (
    "Written by `paradl import machine`: edit it. measured: a log states it; fitted: to a log's "
    "rows; data sheet: as the catalogue's machine with this GPU; assumed: check it."
)


@dataclass(frozen=True)
class Given:
    """Options of the user, None where not given. like: a machine that fills in what is missing."""

    name: str
    like: System | None = None
    pes_per_node: int | None = None
    links_per_node: int | None = None
    size: int | None = None


@dataclass
class Evidence:
    """Contents of the files: runs, devices, topologies."""

    runs: list[Measurement] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    topologies: list[Topology] = field(default_factory=list)


@dataclass(frozen=True)
class ImportedMachine:
    """The system; tags of its values, by key; a row for each fitted run; notes on the rest."""

    system: System
    tags: dict[str, str]
    rows: list[RatedRun]
    notes: list[str]


def import_machine(evidence: Evidence, given: Given) -> ImportedMachine:
    """Return the machine of the evidence. InputError: what is missing."""
    builder = _Builder(evidence, given)
    system = builder.fit(builder.start())
    rows = [rate_run(system, run) for run in builder.fitted]
    return ImportedMachine(system, builder.tags, rows, builder.notes)


def write_machine(imported: ImportedMachine, path: Path) -> None:
    """Write the machine's file, with a tag behind each value."""
    write_text(format_entry(imported.system, HEAD, notes=imported.tags), path)


@dataclass
class _Builder:
    evidence: Evidence
    given: Given
    tags: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    fitted: list[Measurement] = field(default_factory=list)

    def start(self) -> System:
        """Return the system with levels that are yet to be fitted. InputError: what is missing."""
        like = self.find_like()
        # Options first, then what files show, then the machine that the user names.
        pes = self.choose("pes_per_node", self.find_pes_per_node(), like)
        # All nodes are alike: the first topology with adapters stands for them.
        shown = ((len(t.links), f"measured: {t.path}") for t in self.evidence.topologies if t.links)
        links = self.choose("links_per_node", next(shown, None), like)
        largest = max([pes or 1, *(run.pes for run in self.evidence.runs)])
        beyond = any(_is_beyond(run, pes or 1) for run in self.evidence.runs)
        if links is None and not beyond and not self.given.size:
            links, self.tags["links_per_node"] = 1, "assumed: unused, since nothing leaves the node"
        if like is None or pes is None or links is None:
            wanted = zip((like, pes, links), MISSING, strict=True)
            missing = "; ".join(text for value, text in wanted if value is None)
            raise InputError(f"the logs leave open {missing}")
        size = self.given.size or (largest if beyond else pes)
        # Runs inside a node say nothing of how many nodes there are.
        if self.given.like is not None and not beyond and not self.given.size:
            size = like.most_pes if like.pes_per_node == pes else pes
        self.tags["size"] = "stated" if self.given.size else "assumed: the largest run; see --size"
        if size not in (largest, self.given.size):
            self.tags["size"] = f"assumed: as {like.name}; see --size"
        spans = [("node", pes), ("network", size)][: 1 + (size > pes)]
        return System(
            name=self.given.name,
            title="Imported by paradl import machine",
            source=tuple(f"measured: {run.described} ({run.where})" for run in self.evidence.runs),
            pe=self.find_pe(like),
            precision=like.precision,
            **self.copy_values(pes),
            pes_per_node=pes,
            links_per_node=links,
            size=size,
            levels=tuple(
                Level(**self.find_plain(level, pes, like) | {"name": name, "pes": span})
                for level, (name, span) in enumerate(spans)
            ),
        )

    def copy_values(self, pes: int) -> dict[str, Any]:
        """Return what the machine that the user names states, and logs do not show."""
        like = self.given.like
        if like is None:
            return {}
        keys = {*COPIED, "mesh"} if like.pes_per_node == pes else {*COPIED}
        values = like.model_dump(include=keys, exclude_defaults=True)
        self.tags |= dict.fromkeys(values, f"assumed: as {like.name}")
        return values

    def find_like(self) -> System | None:
        """Return the catalogue's machine with the same GPU, or the one that the user names."""
        names = self.list_names()
        expect_one_device(names)
        known = [machine for machine in map(find_machine, names) if machine]
        for name in dict.fromkeys(names):
            if find_machine(name) is None:
                self.notes.append(f"no data sheet of {name!r} in the catalogue")
        like = self.given.like
        if like is not None and known and known[0].pe.device != like.pe.device:
            raise InputError(
                f"--like {like.name} has {like.pe.name}, and the files have {names[0]!r}",
                advice=f"--like a machine with this GPU, such as {known[0].name}",
            )
        if like is not None:
            self.tags |= {"pe": "assumed: as " + like.name, "precision": "assumed"}
        elif known:
            like = known[0]
            self.tags |= {"pe": f"data sheet, as {like.name}", "precision": "assumed"}
        return like

    def list_names(self) -> list[str]:
        """List the names of GPUs in the files."""
        devices = [device.name for device in self.evidence.devices]
        return devices + [run.device for run in self.evidence.runs if run.device]

    def find_pe(self, like: System) -> ProcessingElement:
        """Return the PE, with its memory as measured, if it was."""
        memory = next((d.memory for d in self.evidence.devices if d.memory), None)
        pe = with_memory(like.pe, next(iter(self.list_names()), ""), memory)
        if pe.memory_capacity == memory:
            self.tags["memory_capacity"] = "measured: nvidia-smi"
        return pe

    def choose(self, key: str, counted: tuple[int, str] | None, like: System | None) -> int | None:
        """Return a count: the user's, else the logs', else that of the machine they name."""
        stated = getattr(self.given, key)
        if stated is not None:
            self.tags[key] = "stated"
            return int(stated)
        if counted is not None:
            self.tags[key] = counted[1]
            return counted[0]
        if self.given.like is not None and like is not None:
            self.tags[key] = f"assumed: as {like.name}"
            return int(getattr(like, key))
        return None

    def find_pes_per_node(self) -> tuple[int, str] | None:
        """Return PEs per node, with its tag. InputError: files, or an option, disagree on them."""
        stated = self.given.pes_per_node
        nodes = [(t.gpus, f"measured: {t.path}") for t in self.evidence.topologies]
        nodes += [(d.count, "measured: nvidia-smi") for d in self.evidence.devices if d.count > 1]
        used = [
            (run.pes // run.nodes, f"measured: ranks of {run.where}")
            for run in self.evidence.runs
            if run.nodes and run.tool == "nccl-tests"
        ]
        # Topologies and nvidia-smi show what a program may use, so an option may state more.
        has = [(stated, "--pes-per-node")] if stated else nodes
        # GPUs that NVLinks join in groups may be a node each, of which runs use several.
        if any(stated == t.joined_size for t in self.evidence.topologies):
            used = []
        # Runs may leave PEs of a node idle, and never use more than it has.
        counts = sorted([*has, *used])
        if has and (counts[-1][0] > has[0][0] or {count for count, _ in has} != {has[0][0]}):
            least, most = min(has), counts[-1]
            raise InputError(
                f"the files disagree on the PEs per node: {least[0]} ({least[1]}) and {most[0]} "
                f"({most[1]})",
                advice="import only files of one machine"
                + ("" if stated else ", or state them with --pes-per-node"),
            )
        return counts[-1] if counts else None

    def find_plain(self, level: int, pes: int, like: System) -> dict[str, Any]:
        """Return the path between two PEs at a level, with all else of the level that it is as.

        BLANK: it follows from collectives, later.
        """
        key, at_level = f"levels.{level}", self.list_runs(level, pes)
        runs = [run for run in at_level if _is_lone(run, pes)]
        if runs:
            descriptions = sorted({run.described for run in runs})
            apart = "" if all(run.tool == "nccl-tests" for run in runs) else "; assumed: two nodes"
            self.tags[key] = f"measured: {', '.join(descriptions)}{apart}"
            return _measure_plain(runs).model_dump()
        if any(_is_fitted(run, pes) for run in at_level):
            return BLANK.model_dump()
        if len(like.levels) > level and self.given.like is not None:
            if level == 0:
                self.expect_links(like, pes)
            self.tags[key] = f"assumed: as {like.name}"
            return like.levels[level].model_dump()
        where = "inside a node" if level == 0 else "between nodes"
        raise InputError(
            f"the logs leave open latency and bandwidth {where}",
            advice="add a log of all_reduce_perf there, or --like SYSTEM",
        )

    def expect_links(self, like: System, pes: int) -> None:
        """Raise InputError if a topology has not the links of the node that stands in for it."""
        for node in self.evidence.topologies:
            # As close as marketing rounds bandwidths.
            if like.levels[0].bandwidth > 1.1 * node.find_most(pes):
                size = node.joined_size
                raise InputError(
                    f"{node.joined or 'its GPUs have other links'}: a ring of all "
                    f"{node.gpus} does not reach the "
                    f"{format_quantity(like.levels[0].bandwidth, 'B/s', 3)} of {like.name}",
                    where=str(node.path),
                    advice="add a log of all_reduce_perf of all its GPUs, or another --like SYSTEM"
                    + (f", or let each group be a node: --pes-per-node {size}" if size else ""),
                )

    def list_runs(self, level: int, pes: int) -> list[Measurement]:
        """List the runs inside a node (level 0), or between nodes."""
        return [run for run in self.evidence.runs if _is_beyond(run, pes) == (level == 1)]

    def fit(self, system: System) -> System:
        """Return the system with its measured collectives."""
        # From the node up: a ring across nodes is no faster than inside one.
        pes, like = system.pes_per_node, self.given.like
        for level, stated in enumerate(system.levels):
            fitted = [run for run in self.list_runs(level, pes) if _is_fitted(run, pes)]
            if level == 1 and like and system.levels[0] == like.levels[0]:
                system, lowered = lower_latency(system, like, fitted)
                self.tags["levels.0"] += lowered
            for name in STEPS:
                runs = [run for run in fitted if run.collective == name]
                if not runs:
                    continue
                path = None if like is None or len(like.levels) <= level else like.levels[level]
                found = LineFitter(system, level, name, runs).fit(path)
                if found.assumed == "bandwidth" and level == 0 and like is not None:
                    self.expect_links(like, pes)
                system = with_lines(system, level, name, found.lines)
                self.fitted += runs
                self.tags[f"levels.{level}.{name}"] = _tag(found, like)
                self.notes += note_few(runs, found)
            if stated.bandwidth == BLANK.bandwidth and stated.latency == BLANK.latency:
                system = self.fill_plain(system, level)
        self.notes += [topology.described for topology in self.evidence.topologies]
        for run in self.evidence.runs:
            if run.cut:
                self.notes.append(f"{run.where}: the log lacks its last line: is it cut off?")
            if run.wrong:
                wrong = f"{format_count(run.wrong, 'figure')} of runs with wrong results (#wrong)"
                self.notes.append(f"{run.where}: {wrong}")
            if run not in self.fitted and not _is_lone(run, pes):
                self.notes.append(f"{run.where}: not used: {run.described}")
        return system

    def fill_plain(self, system: System, level: int) -> System:
        """Return the system with a level's own path taken from its collectives' lines."""
        levels = [*system.levels]
        collectives = levels[level].collectives
        assert collectives is not None  # what was left blank had runs to fit
        measured = collectives.model_dump()
        name = next(name for name in AS_MESSAGES if measured[name])
        lines = getattr(collectives, name)
        plain = {
            "latency": find_least(lines),
            "bandwidth": max(line.bandwidth for line in lines),
        }
        levels[level] = levels[level].model_copy(update=plain)
        tag = self.tags[f"levels.{level}.{name}"].removeprefix("fitted")
        words = f"fitted: {name}; from PE to PE assumed as its ring's step"
        self.tags[f"levels.{level}"] = f"{words}{tag and '; '}{tag.strip(': ')}"
        return system.model_copy(update={"levels": tuple(levels)})


def _tag(found: Fitted, like: System | None) -> str:
    """Return where a collective's lines come from, and how far off they are at worst."""
    worst = float(np.abs(found.errors).max())
    off = f"off by up to {100 * np.expm1(worst):.0f} %" if worst > MISFIT else ""
    if found.assumed and like is not None:
        # What is assumed comes first: `paradl` prints these tags.
        words = f"assumed: {found.assumed} as {like.name}, since the sizes leave it open"
        return "; ".join(filter(None, (words, off)))
    return ": ".join(filter(None, ("fitted", off)))


def _is_beyond(run: Measurement, pes: int) -> bool:
    return run.nodes > 1 or run.pes > pes


def _is_lone(run: Measurement, pes: int) -> bool:
    """Return whether a run shows the path of one PE: a message, or a ring of one per node."""
    # With one PE per node no other flow shares its link, unlike in a fitted collective.
    alone = run.nodes > 1 and run.pes == run.nodes and pes > 1
    return run.collective == "send" or (alone and run.collective in STEPS)


def _is_fitted(run: Measurement, pes: int) -> bool:
    # The oracle puts so few PEs into one node, so lines between nodes would change nothing.
    is_spread = run.nodes > 1 and run.pes <= pes
    return run.collective in STEPS and run.pes > 1 and not is_spread and not _is_lone(run, pes)


def _measure_plain(runs: Sequence[Measurement]) -> Connection:
    """Return the start-up and the bandwidth of messages, or of lone rings.

    InputError: the sizes do not show both.
    """
    starts: list[tuple[float, float]] = []
    rates: list[tuple[float, float, bool]] = []
    for run in runs:
        steps = STEPS.get(run.collective, 0) * (run.pes - 1)
        part = run.pes if steps else 1
        # Bytes and seconds of a message, or of a ring's step.
        rows = [(row.size / part, row.seconds / (steps or 1)) for row in run.samples]
        # Many messages are under way at once in a test of bandwidth: their start-ups hide.
        streams = "bandwidth" in run.tool
        if not streams:
            starts.append(min(rows))
        if "latency" not in run.tool:
            rates += [(size / seconds, size, streams) for size, seconds in rows]
    smallest, latency = min(starts, key=lambda row: row[1], default=(0.0, 0.0))
    bandwidth, size, streams = max(rates, default=(0.0, 0.0, False))
    missing = ""
    if not rates or (streams and size < STREAM):
        missing = "bandwidth"
    elif not starts or smallest / bandwidth > latency / 2:
        missing = "latency"
    elif not streams and size / bandwidth < 2 * latency:
        missing = "bandwidth"
    if missing:
        raise InputError(
            f"{runs[0].where}: the sizes measured leave open the {missing} of a message",
            advice="add osu_latency from 1 B on"
            if missing == "latency"
            else "add a log of osu_bw or ib_write_bw with large messages",
        )
    return Connection(latency=float(f"{latency:.4g}"), bandwidth=float(f"{bandwidth:.4g}"))
