"""Files of a machine, told apart by what they hold."""

from itertools import islice
from pathlib import Path

from grids.reading.errors import InputError
from sweep.importing.devices import read_devices
from sweep.importing.loglines import read_lines
from sweep.importing.machine import Evidence
from sweep.importing.messages import read_messages
from sweep.importing.nccl import read_nccl
from sweep.importing.topology import read_topology

# Lines within which a log shows its kind: launchers write some before it.
BEFORE = 2000


def read_evidence(paths: list[Path], pes: int | None) -> Evidence:
    """What the files hold. pes: of runs that do not state theirs. InputError: what is wrong."""
    evidence = Evidence()
    for path in paths:
        kind = _find_kind(path)
        if kind == "topology":
            evidence.topologies.append(read_topology(path))
        elif kind == "devices":
            evidence.devices.append(read_devices(path))
        else:
            runs = [*(read_nccl if kind == "nccl" else read_messages)(path, pes)]
            if not runs:
                raise InputError(
                    "expected rows behind the header, got none",
                    where=str(path),
                    advice="did the benchmark fail?",
                )
            evidence.runs += runs
    return evidence


def _find_kind(path: Path) -> str:
    """topology, devices, nccl or messages; InputError: none of them."""
    for number, (_, line) in enumerate(islice(read_lines(path), BEFORE)):
        folded = line.lower().strip()
        if folded.startswith(("<system", "<?xml", "<!doctype")):
            return "topology"
        if number == 0 and "name" in folded.split(",") and "memory.total" in folded:
            return "devices"
        if number == 0 and folded.startswith("name,"):
            return "devices"
        table = number == 0 and "size" in folded and "time" in folded
        if table or "busbw" in folded or "# nthread" in folded:
            return "nccl"
        if folded.startswith(("# osu ", "#bytes")):
            return "messages"
    raise InputError(
        "no format that is known",
        where=str(path),
        advice="known: nccl-tests (text, CSV), OSU micro-benchmarks, perftest, NCCL's topology, "
        "the CSV of nvidia-smi",
    )
