"""Files of a machine, told apart by what they hold."""

import re
from itertools import islice
from pathlib import Path

from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import open_file
from paradl.sweep.importing.machines.devices import read_devices, read_matrix, read_topology
from paradl.sweep.importing.machines.machine import Evidence
from paradl.sweep.importing.machines.measurements import read_lines
from paradl.sweep.importing.machines.messages import OSU_HEADER, OSU_TITLE, read_messages
from paradl.sweep.importing.machines.nccl import ROW, WANTED, read_nccl
from paradl.sweep.importing.machines.nccl_records import SEPARATORS, read_json, read_table

READERS = {
    "nccl": read_nccl,
    "json": read_json,
    "table": read_table,
    "messages": read_messages,
}
# Lines that may be a benchmark's within which a log shows its kind: others come before it.
BEFORE = 100_000


def read_evidence(paths: list[Path], pes: int | None) -> Evidence:
    """Read all files. pes: of runs that do not state theirs. InputError: a mistake."""
    evidence = Evidence()
    for path in paths:
        # The content tells: logs have any name, often .txt.
        kind = _find_kind(path)
        if kind == "topology":
            evidence.topologies.append(read_topology(path))
        elif kind == "matrix":
            evidence.topologies.append(read_matrix(path))
        elif kind == "devices":
            evidence.devices.append(read_devices(path))
        else:
            runs = [*READERS[kind](path, pes)]
            if not runs:
                raise InputError("no rows behind the header", where=str(path))
            if all(run.pes == 1 for run in runs):
                raise InputError(
                    "one PE exchanges nothing",
                    where=runs[0].where,
                    advice="run the benchmark on at least two PEs",
                )
            evidence.runs += runs
    return evidence


def _find_kind(path: Path) -> str:
    """Return topology, matrix, devices, or a name of READERS. InputError: it is none of them."""
    with open_file(path) as file:
        start = file.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip()
    # Both may stand on one line, however long.
    if start.startswith((b"<system", b"<?xml", b"<!DOCTYPE")):
        return "topology"
    if re.match(rb"\{|\[\s*[\[\]{]|\[$", start):
        return "json"
    first = next((line for _, line in read_lines(path) if line), "")
    folded = first.lower().strip()
    names = [name.strip() for name in folded.split(",")]
    if ("name" in names and "size" not in names) or re.fullmatch(r"[^,]+, *\d+ mib", folded):
        return "devices"
    if folded.split()[:1] == ["gpu0"]:
        return "matrix"
    if "size" in folded and "time" in folded:
        is_table = not first.startswith("#") and any(mark in first for mark in SEPARATORS)
        return "table" if is_table else "nccl"
    for _, line in islice(read_lines(path, WANTED), BEFORE):
        folded = line.lower().strip()
        if "busbw" in folded or "# nthread" in folded or ROW.search(line):
            return "nccl"
        if folded.startswith("#bytes") or OSU_TITLE.match(line) or OSU_HEADER.match(folded):
            return "messages"
        if folded.startswith("nv#"):  # of the legend, where a prompt comes before the matrix
            return "matrix"
    raise InputError(
        "unknown format",
        where=str(path),
        advice="known: nccl-tests (text, CSV, JSON), OSU micro-benchmarks, perftest, NCCL's "
        "topology, nvidia-smi topo -m, the CSV of nvidia-smi",
    )
