"""A node's topology as NCCL writes it (`NCCL_TOPO_DUMP_FILE`): GPUs, NVLinks, adapters.

    <system version="1"><cpu numaid="0" ...><pci busid="0000:0f:00.0" ...>
      <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="..." count="18" tclass="..."/></gpu>
      <nic><net name="mlx5_0" dev="0" speed="400000" port="1" .../></nic></pci></cpu></system>

Speeds of adapters are in Mbit/s. The format is that of NCCL's src/graph/xml.cc.
"""

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from grids.reading.errors import InputError, format_count
from grids.reading.textfile import read_text
from grids.reading.units import format_quantity

# [B/s] of one NVLink, one direction, by the first compute capability that has it: data sheets of
# P100, V100 (and A100, H100), B200.
NVLINKS = {60: 20e9, 70: 25e9, 100: 50e9}


@dataclass
class Topology:
    """A node. nvlinks: of one GPU. adapters: their bandwidths [B/s] by name."""

    path: Path
    gpus: int = 0
    nvlinks: int = 0
    capability: int = 0
    adapters: dict[str, float] = field(default_factory=dict)

    @property
    def links(self) -> list[float]:
        """[B/s] of the adapters that PEs use: the fastest ones; others are for storage and ssh."""
        fastest = max(self.adapters.values(), default=0.0)
        return [speed for speed in self.adapters.values() if speed == fastest]

    @property
    def nvlink_bandwidth(self) -> float:
        """[B/s] that a GPU's NVLinks carry in one direction by the data sheet; 0 without them."""
        known = [speed for capability, speed in NVLINKS.items() if capability <= self.capability]
        return self.nvlinks * known[-1] if known else 0.0

    @property
    def described(self) -> str:
        """The node in words."""
        links = format_quantity(self.nvlink_bandwidth, "B/s", 3)
        adapters = [format_quantity(speed, "B/s", 3) for speed in self.links]
        slower = format_count(len(self.adapters) - len(adapters), "slower one")
        return (
            f"{self.path}: {format_count(self.gpus, 'GPU')}, with "
            f"{format_count(self.nvlinks, 'NVLink')} each, {links} one way; "
            f"{format_count(len(adapters), 'adapter')}{f' of {adapters[0]}' if adapters else ''}"
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
    try:
        for gpu in root.iter("gpu"):
            links = sum(int(link.attrib["count"]) for link in gpu.iter("nvlink"))
            topology.gpus += 1
            topology.nvlinks = max(topology.nvlinks, links)
            topology.capability = int(gpu.get("sm", 0))
        # An adapter without a speed carries nothing.
        for net in root.iter("net"):
            if float(net.get("speed", 0)) > 0:
                port = f"{net.attrib['name']}:{net.get('port', '')}"
                topology.adapters[port] = float(net.attrib["speed"]) * 1e6 / 8
    except (KeyError, ValueError):
        raise InputError("an element lacks a name or a number", where=str(path)) from None
    if not topology.gpus:
        raise InputError(
            "expected NCCL's topology, got no GPU", where=str(path), advice="is it the right file?"
        )
    return topology
