"""Versions of nccl-tests and rccl-tests, by their columns, types and comments, with any prefix.

Laid out as their sources print them: src/common.cu of nccl-tests 1 (2017: bytes, N, op, res, and
times in ms), 2.0 to 2.10 (error) and from 2.11 on (root, #wrong; -C 1: cputime), and of rccl-tests
(fp8_e4m3; versions of RCCL and HIP). No version is known to have more figures than these; a
hypothetical one has.
"""

import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.importing.machines.measurements import Measurement
from paradl.sweep.importing.machines.read import read_evidence

PES, LATENCY, BANDWIDTH = 8, 8.4e-6, 235e9
SIZES = [1 << bit for bit in range(10, 31, 4)]
WAY = "time algbw busbw #wrong"
ROOT = f"size count type redop root {WAY} {WAY}"
UNITS = "(B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)"
RCCL = "RCCL version : 2.21.5-HEAD:8e5e6b4\nHIP version  : 6.3.42131\nMSCCL: scheduler loaded"
# The two lines of the header, the type, and how time, algbw and busbw follow each other in a way.
VERSIONS = {
    "1": ("bytes N type op time algbw busbw res time algbw busbw res", "", "float", "{ms} 2e-07"),
    "2.0": (
        "size count type redop time algbw busbw error time algbw busbw error",
        UNITS,
        "int8",
        "{us} 2e-07",
    ),
    "2.11": (ROOT, UNITS, "f8e5m2", "{us} 0"),
    "rccl": (ROOT, UNITS, "fp8_e4m3", "{us} N/A"),
    "no units": (ROOT, "", "half", "{us} 0"),
    "more figures": (
        ROOT.replace("time", "time min max").replace("busbw", "busbw std"),
        UNITS.replace("(us)", "(us) (us) (us)").replace("(GB/s) (GB/s)", 3 * "(GB/s) "),
        "float",
        "{more} 0",
    ),
}


def find_time(size: float) -> float:
    return 2 * (PES - 1) * (LATENCY + size / PES / BANDWIDTH)


def write_log(version: str) -> str:
    names, units, kind, way = VERSIONS[version]
    lines = [RCCL] if version == "rccl" else ["# nThread 1 nGpus 8 minBytes 1024"]
    lines += [f"#   Rank {n:2d} Pid 7 on host device {n:2d} [0x0{n}] A100-SXM4" for n in range(PES)]
    lines += ["#       out-of-place        in-place", f"#   {names}"]
    lines += [f"#   {units}"] * bool(units)
    for size in SIZES:
        seconds = find_time(size)
        rate = size / seconds / 1e9
        rates = f"{rate:.2f} {rate * 1.75:.2f}"
        us = f"{1e6 * seconds:.2f}"
        more = f"{us} 0.01 99999 {rates} 0.5"
        figures = way.format(ms=f"{1e3 * seconds:.3f} {rates}", us=f"{us} {rates}", more=more)
        root = " -1" if "root" in names else ""
        lines.append(f"  {size} {size // 4} {kind} sum{root} {figures} {figures}")
    return "\n".join([*lines, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.2"])


@pytest.fixture
def read(tmp_path):
    def read_text(text: str, pes: int | None = None) -> list[Measurement]:
        path = tmp_path / "log.txt"
        path.write_text(text)
        return read_evidence([path], pes).runs

    return read_text


def expect_figures(run: Measurement) -> None:
    assert (run.collective, run.pes, run.nodes, run.device) == ("all_reduce", PES, 1, "A100-SXM4")
    assert (len(run.samples), run.cut, run.wrong) == (2 * len(SIZES), False, 0)
    for row in run.samples:
        assert row.seconds == pytest.approx(find_time(row.size), rel=5e-3)


@pytest.mark.parametrize("is_pasted", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_columns_are_read_by_their_names(version, is_pasted, read):
    text = write_log(version)
    (run,) = read(text.replace("#   ", "   ").replace("# ", " ") if is_pasted else text)
    expect_figures(run)


def test_times_of_hosts_are_refused(read):
    with pytest.raises(InputError, match=r"log\.txt:11: .*cputime"):
        read(write_log("2.11").replace(" time", " cputime"))


PREFIXES = (
    "[prterun-host-123@1,0]<stdout>: ",  # Open MPI 5
    "Mon Dec  4 10:11:12 2023<stdout>:",  # mpirun --timestamp-output
    "Mon Dec 14 10:11:12 2023[1,0]<stdout>:",
    "[default0]:",  # torchrun
    "[0] ",  # Hydra
    "[pod/nccl-launcher-x8k2/main] ",  # kubectl logs --prefix
)
OSU = "# OSU NCCL Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n1048576    410.5\n"


@pytest.mark.parametrize("is_pasted", [False, True])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_stand_before_any_line(prefix, is_pasted, read):
    def tag(text: str) -> str:
        lines = (line.lstrip("# ") if is_pasted else line for line in text.split("\n"))
        return "".join(f"{prefix}{line}\n" for line in lines)

    (run,) = read(tag(write_log("2.11")))
    expect_figures(run)
    (run,) = read(tag(OSU), 4)
    assert (run.collective, run.pes, run.samples[0].seconds) == ("all_reduce", 4, 410.5e-6)
