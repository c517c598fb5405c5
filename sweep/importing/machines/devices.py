"""GPUs of a node: by the names that tools print, and in topologies: NCCL's, nvidia-smi's matrix.

NCCL's (`NCCL_TOPO_DUMP_FILE`) is XML:

    <system version="1"><cpu numaid="0" ...><pci busid="0000:0f:00.0" ...>
      <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="..." count="18" tclass="..."/></gpu>
      <nic><net name="mlx5_0" dev="0" speed="400000" port="1" .../></nic></pci></cpu></system>

Speeds of adapters are in Mbit/s; the format is that of NCCL's src/graph/xml.cc. In the matrix of
`nvidia-smi topo -m`, NV12 are twelve NVLinks, direct or through switches; SYS, PHB ... are PCIe.
Peaks and memory are those of the catalogue's machines.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from paradl.grids.entries.systems import ProcessingElement, System
from paradl.grids.library import find
from paradl.grids.reading.csvfile import read_rows
from paradl.grids.reading.errors import InputError, format_count, shorten
from paradl.grids.reading.textfile import read_text
from paradl.grids.reading.units import format_quantity
from paradl.sweep.importing.machines.measurements import read_lines, report_cut

# Patterns in a name, and the catalogue's machine with this PE; the first that fits counts. None:
# peaks, memory or links differ from those of the modules below.
MACHINES: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("gh200", "480gb"), "gh200"),
    (("h100", "pcie"), "h100-pcie"),
    (("gh200|pcie",), None),
    (("gb300",), "gb300-nvl72"),
    (("b300",), "dgx-b300"),
    (("gb200",), "gb200-nvl72"),
    (("b200",), "dgx-b200"),
    (("h200", "nvl"), "h200-nvl"),
    (("h200",), "dgx-h200"),
    (("h100", "nvl"), "h100-nvl"),
    (("h100", "hbm3"), "dgx-h100"),
    (("h100", "sxm"), "dgx-h100"),
    (("a100", "sxm", "80gb"), "dgx-a100-80gb"),
    (("a100", "sxm"), "dgx-a100"),
    (("v100", "sxm3"), "dgx2-v100"),
    (("v100", "sxm", "32gb"), "dgx1-v100-32gb"),
    (("v100", "sxm"), "dgx1-v100"),
    (("p100", "sxm"), "dgx1-p100"),
    (("l40s",), "l40s"),
    (("nvidiaa10$",), "a10"),
    (("rtx3090$",), "rtx3090"),
    (("rtx4090$",), "rtx4090"),
    (("mi355x",), "mi355x"),
    (("mi350x",), "mi350x"),
    (("mi300x",), "mi300x"),
    (("mi250x",), "frontier"),
)
# Words of names that tell no GPUs apart.
VENDORS = {"nvidia", "tesla", "geforce", "amd", "instinct"}
MEBIBYTE = 2.0**20


@dataclass(frozen=True)
class Device:
    """A GPU as nvidia-smi prints it. memory [B]: None where it was not asked for."""

    name: str
    count: int
    memory: float | None


def read_devices(path: Path) -> Device:
    """Return the GPUs in the CSV of `nvidia-smi --query-gpu=name,memory.total --format=csv`."""
    rows = [*read_rows(path)]
    first = rows[0][1] if rows else []
    if len(first) == 2 and re.fullmatch(r"\d+ MiB", first[1]):
        rows = [("", ["name", "memory.total"]), *rows]  # --format=csv,noheader
    head = [name.lower() for name in rows[0][1]] if rows else []
    if "name" not in head or len(rows) < 2:
        raise InputError(
            "expected the column name and a row for each GPU",
            where=str(path),
            advice="nvidia-smi --query-gpu=name,memory.total --format=csv",
        )
    kinds: set[tuple[str, float | None]] = set()
    for where, row in rows[1:]:
        if len(row) != len(head):
            raise InputError(f"expected {len(head)} fields, got {len(row)}", where=where)
        fields = dict(zip(head, row, strict=True))
        sizes = ((text, key) for key, text in fields.items() if key.startswith("memory.total"))
        kinds.add((fields["name"], next((_read_memory(*size, path) for size in sizes), None)))
    if len(kinds) > 1:
        listed = sorted(
            name if size is None else f"{name}, {size / MEBIBYTE:,.0f} MiB" for name, size in kinds
        )
        raise InputError(
            f"expected one kind of GPU, got {shorten(listed)}",
            where=str(path),
            advice="describe each kind of node as a machine of its own",
        )
    ((name, memory),) = kinds
    stated = _find_stated(name)
    if memory and stated and not 0.85 < memory / stated < 1.15:
        raise InputError(
            f"{shorten(name)} has {memory / MEBIBYTE:,.0f} MiB, by its name {stated / 1e9:g} GB",
            where=str(path),
            advice="is it a slice of a GPU, or was the file edited?",
        )
    return Device(name, len(rows) - 1, memory)


def _read_memory(text: str, head: str, path: Path) -> float:
    """Return bytes in a field such as `81559 MiB`, or `81559` below `memory.total [MiB]`."""
    # At most a petabyte: hundreds of digits would be infinite.
    match = re.fullmatch(r"(\d{1,9})\s*(mib)?", text.strip().lower())
    if match is None or not (match[2] or "[mib]" in head):
        raise InputError(f"expected memory in MiB, got {shorten(text)}", where=str(path))
    return float(match[1]) * MEBIBYTE


def expect_one_device(names: Iterable[str]) -> None:
    """Raise InputError if these names are not all of one GPU."""
    for one, other in combinations(dict.fromkeys(names), 2):
        known = find_machine(one), find_machine(other)
        words = [{*re.split(r"[\s_-]+", name.lower())} - VENDORS for name in (one, other)]
        # Drivers and tools word one GPU differently, and may leave a part out.
        is_part = words[0] <= words[1] or words[1] <= words[0]
        if known[0] != known[1] if all(known) else not is_part:
            raise InputError(
                f"the files disagree on the GPU: {shorten(one)} and {shorten(other)}",
                advice="import only files of one machine",
            )


def find_machine(name: str) -> System | None:
    """Return the catalogue's machine with PEs of this name; None: it has none."""
    folded = re.sub(r"[\s_-]", "", name.lower())
    fitting = (m for patterns, m in MACHINES if all(re.search(p, folded) for p in patterns))
    machine = next(fitting, None)
    return None if machine is None else find("system", machine, Path())


def with_memory(pe: ProcessingElement, name: str, memory: float | None) -> ProcessingElement:
    """Return the PE with the memory that was measured, or that its name states."""
    memory = memory or _find_stated(name)
    # Names round a capacity, and nvidia-smi's total includes what the driver keeps: one card has
    # one figure. A tenth off is another variant of the GPU.
    if memory is None or abs(memory / pe.memory_capacity - 1) <= 0.1:
        return pe
    return pe.model_copy(update={"memory_capacity": memory})


def _find_stated(name: str) -> float | None:
    """Return the memory [B] that a GPU's name states; None: it states none."""
    # A GH200's name states the memory of its CPU.
    stated = None if "GH200" in name else re.search(r"(\d+)\s*GB", name)
    return float(stated[1]) * 1e9 if stated else None


# [B/s] of one NVLink, one direction, by the first compute capability that has it: data sheets of
# P100, V100 (and A100, H100), B200.
NVLINKS = {60: 20e9, 70: 25e9, 100: 50e9}
PCIE = 64e9  # [B/s] of the fastest in use: version 5.0, 16 lanes, one direction
MATRIX_NAME, MATRIX_LINKS = re.compile(r"GPU\d{1,4}"), re.compile(r"NV(\d{1,2})")
POWER = "0x068001"  # class of IBM's CPUs, which have NVLinks, too
MOST_NVLINKS = 18  # of one GPU: H100, B200
# Larger counts and speeds [Mbit/s] are no hardware's.
MOST_LINKS, MOST_CAPABILITY, MOST_SPEED = 1024, 1000, 1e8


@dataclass
class Topology:
    """A node. nvlinks: of one GPU. adapters: their bandwidths [B/s] by name.

    groups: GPUs that NVLinks join, directly, through others or through switches. shows_links:
    whether the file states links. capability: 0 where it is not stated.
    """

    path: Path
    gpus: int = 0
    nvlinks: int = 0
    capability: int = 0
    adapters: dict[str, float] = field(default_factory=dict)
    groups: list[list[int]] = field(default_factory=list)
    shows_links: bool = False

    @property
    def links(self) -> list[float]:
        """[B/s] of the adapters that PEs use: the fastest ones; others are for storage and ssh."""
        fastest = max(self.adapters.values(), default=0.0)
        return [speed for speed in self.adapters.values() if speed == fastest]

    @property
    def nvlink_bandwidth(self) -> float:
        """[B/s] that a GPU's NVLinks carry in one direction by the data sheet; 0 without them.

        Of an unknown GPU, those of the fastest.
        """
        capability = self.capability or max(NVLINKS)
        known = [speed for first, speed in NVLINKS.items() if first <= capability]
        return self.nvlinks * known[-1] if known else 0.0

    @property
    def joined_size(self) -> int:
        """GPUs in each group that NVLinks join, if there are several groups of one size; else 0."""
        sizes = {len(group) for group in self.groups}
        return max(sizes) if len(sizes) == 1 < len(self.groups) and max(sizes) > 1 else 0

    def find_most(self, pes: int) -> float:
        """Return [B/s] that a ring of `pes` GPUs cannot exceed; infinite if no file tells."""
        is_joined = len(self.groups) == 1 or pes == self.joined_size
        return max(self.nvlink_bandwidth * is_joined, PCIE) if self.shows_links else np.inf

    @property
    def joined(self) -> str:
        """What NVLinks join, in words; empty if that is all GPUs, or if there are none."""
        shown = ", ".join("-".join(map(str, group)) for group in self.groups if len(group) > 1)
        return f"NVLinks join only the GPUs {shown}" if shown and len(self.groups) > 1 else ""

    @property
    def described(self) -> str:
        """The node in words."""
        rate = f", {format_quantity(self.nvlink_bandwidth, 'B/s', 3)} one way"
        links = f", with {format_count(self.nvlinks, 'NVLink')} each"
        adapters = [format_quantity(speed, "B/s", 3) for speed in self.links]
        count = format_count(len(adapters), "adapter")
        slower = format_count(len(self.adapters) - len(adapters), "slower one")
        return (
            f"{self.path}: {format_count(self.gpus, 'GPU')}{links if self.shows_links else ''}"
            f"{rate if self.capability else ''}{f'; {self.joined}' if self.joined else ''}"
            f"{f'; {count} of {adapters[0]}' if adapters else ''}"
            f"{f'; {slower}, not counted' if len(self.adapters) > len(adapters) else ''}"
        )


def read_topology(path: Path) -> Topology:
    """Return the topology in a file. InputError: it is no XML, has entities, or no GPU."""
    text = read_text(path)
    # An entity of ten lines expands to gigabytes, or reads other files; NCCL declares none.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError("document types and entities are not read", where=str(path))
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(
            f"no XML: {expat.ErrorString(error.code)}",
            where=f"{path}:{error.position[0]}",
            advice="is it cut off?",
        ) from None
    topology = Topology(path)
    links: list[tuple[str, str]] = []
    busids: list[str] = []
    for place in root.iter():
        for gpu in place.findall("gpu"):
            busids.append(place.get("busid", "").lower())
            ends = [link for link in gpu.iter("nvlink") if link.get("tclass") != POWER]
            links += [(busids[-1], link.get("target", "").lower()) for link in ends]
            count = sum(_read_number(link, "count", MOST_LINKS, path) for link in ends)
            topology.nvlinks = max(topology.nvlinks, int(count))
            topology.capability = int(_read_number(gpu, "sm", MOST_CAPABILITY, path, "0"))
    for net in root.iter("net"):
        # An adapter without a speed carries nothing.
        if speed := _read_number(net, "speed", MOST_SPEED, path, "0"):
            topology.adapters[f"{net.get('name')}:{net.get('port', '')}"] = speed * 1e6 / 8
    topology.gpus, topology.groups = len(busids), _group(busids, links)
    topology.shows_links = topology.capability > 0  # not of AMD's GPUs
    if not topology.gpus:
        raise InputError(
            "expected NCCL's topology, got no GPU", where=str(path), advice="is it the right file?"
        )
    return topology


def read_matrix(path: Path) -> Topology:
    """Return the topology in what `nvidia-smi topo -m` prints. InputError: a row is cut off."""
    names: list[str] = []
    rows: dict[str, list[int]] = {}
    for where, line in read_lines(path):
        words = line.split()
        if not names:
            names = [word for word in words if MATRIX_NAME.fullmatch(word)]
        elif words and words[0] in names:
            if len(words) <= len(names):
                raise report_cut(1 + len(names), len(words), where)
            cells = [MATRIX_LINKS.fullmatch(word) for word in words[1 : 1 + len(names)]]
            rows[words[0]] = [int(cell[1]) if cell else 0 for cell in cells]
    if len(rows) != len(names):
        what = f"expected a row for each of {len(names)} GPUs, got {len(rows)}"
        raise InputError(what, where=str(path), advice="is it cut off?")
    links = [(a, b) for a in names for b, n in zip(names, rows[a], strict=True) if n]
    # Through switches, the same links lead to all GPUs.
    counts = [sum(row) if sum(row) <= MOST_NVLINKS else max(row) for row in rows.values()]
    return Topology(path, len(names), max(counts), groups=_group(names, links), shows_links=True)


def _read_number(
    element: ElementTree.Element, name: str, most: float, path: Path, missing: str = ""
) -> float:
    """Return an element's number, of at least 0. missing: its text where it has none."""
    text = element.get(name, missing)
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not 0 <= number <= most:
        raise InputError(
            f"{element.tag} {name}: expected a number of at most {most:,.0f}, got {shorten(text)}",
            where=str(path),
            advice="is the file damaged?",
        )
    return number


def _group(busids: list[str], links: list[tuple[str, str]]) -> list[list[int]]:
    """Return the GPUs that links join. links: from a GPU, to another one or to a switch."""
    places = {busid: number for number, busid in enumerate(busids)}
    # Switches of a node are one: each GPU is linked to all of them.
    ends = np.array([[places[a], places.get(b, len(busids))] for a, b in links], int).reshape(-1, 2)
    size = len(busids) + 1
    graph = coo_array((np.ones(len(ends)), ends.T), (size, size))
    labels = connected_components(graph, directed=False)[1][:-1]
    return [np.flatnonzero(labels == label).tolist() for label in dict.fromkeys(labels)]
