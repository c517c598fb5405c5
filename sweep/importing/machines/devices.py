"""GPUs by the names that tools print: their peaks and memory, from the catalogue's machines."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from paradl.grids.entries.systems import ProcessingElement, System
from paradl.grids.library import find
from paradl.grids.reading.csvfile import read_rows
from paradl.grids.reading.errors import InputError, shorten

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
# Compute capabilities, times ten, by the first part of `pe.device`.
CAPABILITIES = {
    **{"p100": 60, "v100": 70, "a100": 80, "a10": 86, "l40s": 89, "rtx4090": 89, "h100": 90},
    **{"h200": 90, "gh200": 90, "b200": 100, "gb200": 100, "b300": 103, "gb300": 103},
}
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
    at = [n for n, text in enumerate(head) if text == "name" or text.startswith("memory.total")]
    kinds: set[tuple[str, ...]] = set()
    for where, row in rows[1:]:
        if len(row) != len(head):
            raise InputError(f"expected {len(head)} fields, got {len(row)}", where=where)
        kinds.add(tuple(row[n] for n in at))
    if len(kinds) > 1:
        raise InputError(
            f"expected one kind of GPU, got {shorten(sorted(kinds))}",
            where=str(path),
            advice="describe each kind of node as a machine of its own",
        )
    (values,) = kinds
    fields = dict(zip([head[n] for n in at], values, strict=True))
    name = fields.pop("name")
    memory = next((_read_memory(text, key, path) for key, text in fields.items()), None)
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
