"""GPUs by the names that tools print: their peaks and memory, from the catalogue's machines."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from grids.entries.systems import ProcessingElement, System
from grids.library import find
from grids.reading.errors import InputError, shorten
from grids.reading.textfile import read_text

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
    (("rtx4090$",), "rtx4090"),
    (("mi355x",), "mi355x"),
    (("mi350x",), "mi350x"),
    (("mi300x",), "mi300x"),
    (("mi250x",), "frontier"),
)
MEBIBYTE = 2.0**20


@dataclass(frozen=True)
class Device:
    """A GPU as nvidia-smi prints it. memory [B]: None where it was not asked for."""

    name: str
    count: int
    memory: float | None


def read_devices(path: Path) -> Device:
    """Return the GPUs in the CSV of `nvidia-smi --query-gpu=name,memory.total --format=csv`."""
    rows = [row for row in csv.reader(read_text(path).splitlines(), skipinitialspace=True) if row]
    if rows and len(rows[0]) == 2 and re.fullmatch(r"\d+ MiB", rows[0][1]):
        rows = [["name", "memory.total"], *rows]  # --format=csv,noheader
    head = [name.strip().lower() for name in rows[0]] if rows else []
    if "name" not in head or len(rows) < 2:
        raise InputError(
            "expected the column name and a row for each GPU",
            where=str(path),
            advice="nvidia-smi --query-gpu=name,memory.total --format=csv",
        )
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(head):
            raise InputError(
                f"expected {len(head)} fields, got {len(row)}", where=f"{path}:{number}"
            )
    names = {row[head.index("name")] for row in rows[1:]}
    if len(names) > 1:
        raise InputError(
            f"expected one kind of GPU, got {shorten(sorted(names))}",
            where=str(path),
            advice="describe each kind of node as a machine of its own",
        )
    column = next((n for n, name in enumerate(head) if name.startswith("memory.total")), None)
    memory = None if column is None else _read_memory(rows[1][column], head[column], path)
    return Device(names.pop(), len(rows) - 1, memory)


def _read_memory(text: str, head: str, path: Path) -> float:
    """Return bytes in a field such as `81559 MiB`, or `81559` below `memory.total [MiB]`."""
    # At most a petabyte: hundreds of digits would be infinite.
    match = re.fullmatch(r"(\d{1,9})\s*(mib)?", text.strip().lower())
    if match is None or not (match[2] or "[mib]" in head):
        raise InputError(f"expected memory in MiB, got {shorten(text)}", where=str(path))
    return float(match[1]) * MEBIBYTE


def find_machine(name: str) -> System | None:
    """Return the catalogue's machine with PEs of this name; None: it has none."""
    folded = re.sub(r"[\s_-]", "", name.lower())
    fitting = (m for patterns, m in MACHINES if all(re.search(p, folded) for p in patterns))
    machine = next(fitting, None)
    return None if machine is None else find("system", machine, Path())


def with_memory(pe: ProcessingElement, name: str, memory: float | None) -> ProcessingElement:
    """Return the PE with the memory that was measured, or that its name states."""
    # A GH200's name states the memory of its CPU.
    stated = None if "GH200" in name else re.search(r"(\d+)\s*GB", name)
    memory = memory or (float(stated[1]) * 1e9 if stated else None)
    # Names round a capacity, and nvidia-smi's total includes what the driver keeps: one card has
    # one figure. A tenth off is another variant of the GPU.
    if memory is None or abs(memory / pe.memory_capacity - 1) <= 0.1:
        return pe
    return pe.model_copy(update={"memory_capacity": memory})
