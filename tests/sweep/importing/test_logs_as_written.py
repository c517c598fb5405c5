"""Logs as people keep them: launchers' prefixes, several runs, other versions of the tools.

Figures are made by a line of latency and bandwidth, laid out as the tools print them: nccl-tests
2.13 to 2.17 (text, `-J`), rccl-tests (`-Z csv`, `-Z json`), OSU 5.6 to 7.5, perftest 4.5 to 24.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from paradl.grids.library import find
from paradl.grids.reading.errors import InputError
from paradl.sweep.importing.machines.measurements import Measurement, find_bus_factor
from paradl.sweep.importing.machines.read import read_evidence

RANK = (
    "#  Rank {0:2d} Group  0 Pid  {1} on {2:>10} device {3:2d} [0000:1b:00] NVIDIA H100 80GB HBM3"
)
NAMES, UNITS = "    time   algbw   busbw #wrong", "    (us)  (GB/s)  (GB/s)       "
HEAD = f"""#
#                                                              out-of-place                in-place
#       size         count      type   redop    root {NAMES} {NAMES}
#        (B)    (elements)                           {UNITS} {UNITS}"""
STEPS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1, "sendrecv": 1}
# Of an H100 node: start-up of a step [s], bus bandwidth [B/s].
LINES = {
    "all_reduce": (2.4e-6, 470e9),
    "all_gather": (3.1e-6, 355e9),
    "reduce_scatter": (3.4e-6, 340e9),
    "alltoall": (4.2e-6, 290e9),
}


def find_time(name, size, pes=8):
    alpha, bandwidth = LINES[name]
    return STEPS[name] * (pes - 1) * (alpha + size / pes / bandwidth)


def format_time(seconds):
    """As nccl-tests does it: seven characters, whatever the size."""
    us = 1e6 * seconds
    return f"{us:7.0f}" if us >= 10000 else f"{us:7.1f}" if us >= 100 else f"{us:7.2f}"


def write_row(name, size, *, in_place=True, wrong="0", end=""):
    seconds = find_time(name, size)
    algbw = size / seconds / 1e9
    busbw = algbw * find_bus_factor(name.replace("alltoall", "all_to_all"), 8)
    figures = f"{format_time(seconds)} {algbw:7.2f} {busbw:7.2f} {wrong:>6}"
    redop = "none" if name in ("all_gather", "alltoall") else "sum"
    row = f"{size:12d} {size // 4:12d}     float {redop:>7}      -1 {figures}"
    return f"{row} {figures if in_place else ''}{end}"


def write_run(name, *, ranks=True, starting=True, head=HEAD, avg=True, sizes=None, **row) -> str:
    sizes = sizes or [1 << bit for bit in range(10, 33, 2)]
    lines = [
        "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809",
        *([f"# Collective test starting: {name}_perf"] if starting else []),
        "# nThread 1 nGpus 8 minBytes 1024 maxBytes 8589934592 step: 4(factor) warmup iters: 1 "
        "iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#",
        "# Using devices",
        *(RANK.format(n, 4000 + n, "gpu-node-3", n) for n in range(8 * ranks)),
        "NCCL version 2.28.9+cuda12.9",
        *head.splitlines(),
        *(write_row(name, size, **row) for size in sizes),
        "# Out of bounds values : 0 OK",
        *(["# Avg bus bandwidth    : 212.378 "] if avg else []),
        "#",
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def read(tmp_path):
    def read_text(text, name="log.txt", pes=None) -> list[Measurement]:
        path = tmp_path / name
        path.write_text(text)
        return read_evidence([path], pes).runs

    return read_text


def expect_figures(run, name, pes=8):
    """Times are those of the line; text has three digits of them."""
    assert run.pes == pes
    assert run.collective == name.replace("alltoall", "all_to_all")
    for row in run.samples:
        assert row.seconds == pytest.approx(find_time(name, row.size, pes), rel=5e-3)


def test_four_collectives_of_one_job_are_fitted_each_by_itself(cli, tmp_path):
    """A loop of a job script, echoed by its shell; all-to-all has no check in place."""
    text = "".join(
        f"+ mpirun -np 8 --bind-to none ./build/{name}_perf -b 1K -e 8G -f 4 -g 1\n"
        + write_run(name, wrong="N/A" if name == "alltoall" else "0")
        for name in LINES
    )
    log, output = tmp_path / "slurm-4711.out", tmp_path / "mine.yaml"
    log.write_text(text)
    code, out, err = cli("import", "machine", log, "-o", output, "--format", "json")
    assert code == 0, err
    rows = {row["collective"]: row for row in json.loads(out)["rows"]}
    collectives = find("system", str(output), tmp_path).levels[0].collectives
    assert collectives is not None
    for name, (latency, bandwidth) in LINES.items():
        ours = name.replace("alltoall", "all_to_all")
        assert rows[ours]["median_error_above_1MB"] < 0.01
        (line,) = getattr(collectives, ours)
        assert (line.latency, line.bandwidth) == pytest.approx((latency, bandwidth), rel=0.02)


PREFIXES = {
    "times of Kubernetes": "2026-03-04T05:06:07.123456789Z ",
    "times of a collector": "[2026-03-04 05:06:07,123] ",
    "ranks of mpirun": "[1,0]<stdout>:",
    "ranks of srun": " 0: ",
    "names of pdsh": "gpu-node-3: ",
    "names of compose": "nccl-test-1  | ",
    "colours": "\x1b[0;32m",
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_of_launchers_and_collectors(prefix, read):
    text = write_run("all_reduce")
    tagged = "".join(f"{PREFIXES[prefix]}{line}\n" for line in text.splitlines())
    (run,) = read(tagged)
    expect_figures(run, "all_reduce")
    assert (run.device, run.nodes, run.cut) == ("NVIDIA H100 80GB HBM3", 1, False)


def test_hosts_that_write_at_once(read):
    """Debug lines of other ranks between all rows; a bar that returns to the start of its line."""
    debug = (
        "gpu-node-9:11745:11801 [5] NCCL INFO Channel 00/24 : 0 1 2 3 4 5 6 7 via P2P/CUMEM/read"
    )
    bar = "\r 10%|█         | 1/10 [00:01<00:09,  1.00s/it]\r"
    lines = write_run("all_gather").splitlines()
    (run,) = read("".join(f"{debug}\n{bar}{line}\n" for line in lines))
    expect_figures(run, "all_gather")


VARIANTS: dict[str, dict[str, Any]] = {
    "a column of times": {
        "head": HEAD.replace(f"{NAMES}\n", f"{NAMES}   timestamp\n"),
        "end": " 2026-03-04 05:06:07",
    },
    "no figures in place": {"in_place": False},
    "windows": {"end": "\r"},
    "figures in milliseconds": {},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_of_the_columns(name, read):
    text = write_run("all_reduce", **VARIANTS[name])
    if name == "figures in milliseconds":
        rows = [line for line in text.splitlines() if " float " in line]
        for line in rows:
            words = line.split()
            words[5] = words[9] = f"{float(words[5]) / 1000:.6f}"
            text = text.replace(line, " ".join(words))
        text = text.replace("(us)", "(ms)")
    (run,) = read(text)
    expect_figures(run, "all_reduce")


def test_rows_without_their_header(read):
    """Those that `grep float` leaves; the file's name states the collective."""
    rows = "\n".join(line for line in write_run("all_reduce").splitlines() if " float " in line)
    (run,) = read(rows, "all_reduce.txt")
    expect_figures(run, "all_reduce")
    with pytest.raises(InputError, match="busbw"):
        read(rows, "all_gather.txt", 8)


def write_old_run(name: str, columns: str, sizes=None) -> str:
    """As nccl-tests before 2.11 print it: without root, or redop; an error, not #wrong."""
    lines = [
        "# nThread 1 nGpus 8 minBytes 1024 maxBytes 4294967296 step: 4(factor) warmup iters: 5",
        "#",
        "# Using devices",
        *(f"#   Rank {n:2d} Pid  77 on    host device {n:2d} [0x0{n}] A100-SXM4" for n in range(8)),
        "#                                       out-of-place                       in-place",
        f"#       size         count    type {columns} {2 * '    time   algbw   busbw  error '}",
        f"#        (B)    (elements)        {2 * '    (us)  (GB/s)  (GB/s)        '}",
    ]
    for size in sizes or [1 << bit for bit in range(10, 33, 2)]:
        words = write_row(name, size, wrong="4e-07").split()
        lines.append("  ".join([*words[: 3 + len(columns.split())], *words[5:]]))
    return "\n".join([*lines, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.2"])


@pytest.mark.parametrize("lost", ["nothing", "the #", "the # and its blank", "all but rows"])
@pytest.mark.parametrize(
    ("name", "columns"), [("all_reduce", "redop"), ("all_gather", ""), ("reduce_scatter", "redop")]
)
def test_old_columns_and_logs_that_were_pasted(name, columns, lost, read):
    """Forums and trackers take a # at the start of a line for a heading."""
    text = write_old_run(name, columns)
    lines = [line for line in text.splitlines() if lost != "all but rows" or " float " in line]
    start = "# " if lost == "the # and its blank" else "#"
    text = "\n".join(line if lost == "nothing" else line.removeprefix(start) for line in lines)
    (run,) = read(text, f"{name}.txt")
    expect_figures(run, name)
    assert len(run.samples) == 24
    assert run.wrong == 0
    assert run.cut == (lost == "all but rows")
    assert (run.device, run.nodes) == (("", 0) if lost == "all but rows" else ("A100-SXM4", 1))


def test_a_pasted_log_of_a_new_version(read):
    """Its #wrong begins no comment."""
    text = "\n".join(line.removeprefix("#") for line in write_run("all_reduce").splitlines())
    (run,) = read(text)
    expect_figures(run, "all_reduce")
    assert (run.device, run.cut) == ("NVIDIA H100 80GB HBM3", False)


def test_the_command_names_the_collective(read):
    """Old versions do not print which test starts."""
    texts = [
        f"$ ./build/{name}_perf -g 8\n{write_run(name, starting=False, ranks=False)}"
        for name in ("reduce_scatter", "all_gather")
    ]
    first, second = read("".join(texts))
    expect_figures(first, "reduce_scatter")
    expect_figures(second, "all_gather")


def test_headers_that_repeat_and_restarts(read):
    """A run that was started again, and a header before each size."""
    run = write_run("all_reduce")
    cut = "\n".join(run.splitlines()[:22]) + "\nTest NCCL failure common.cu:1279 'unhandled cuda'\n"
    repeated = "".join(write_run("all_reduce", sizes=[1 << bit]) for bit in (20, 22))
    runs = read(cut + run + repeated)
    assert [len(run.samples) for run in runs] == [8, 24, 2, 2]
    for run in runs:
        expect_figures(run, "all_reduce")
    assert [run.cut for run in runs] == [True, False, False, False]


def test_wrong_results_are_noted(cli, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text(write_run("all_reduce", wrong="37"))
    code, _, err = cli("import", "machine", log, "-o", tmp_path / "mine.yaml")
    assert code == 0
    assert "24 figures of runs with wrong results" in err


def list_results(name) -> Iterator[tuple[int, dict[str, float], dict[str, float]]]:
    """Size, and figures with nccl-tests' and rccl-tests' keys."""
    for size in (1 << bit for bit in range(10, 30)):
        seconds = find_time(name, size)
        rate = size / seconds / 1e9
        figures = 1e6 * seconds, rate, rate * find_bus_factor(name, 8)
        yield (
            size,
            dict(zip(("time", "alg_bw", "bus_bw"), figures, strict=True)),
            dict(zip(("time", "algBw", "busBw"), figures, strict=True)),
        )


def test_json_of_nccl_tests(read):
    results = [
        {"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": -1}
        | {"out_of_place": figures | {"nwrong": 0}, "in_place": figures | {"nwrong": "N/A"}}
        for size, figures, _ in list_results("all_reduce")
    ]
    ranks = [
        {"rank": n, "group": 0, "pid": 77 + n, "hostname": "a", "device": n, "device_name": "H100"}
        for n in range(8)
    ]
    document = {
        "version": 1,
        "start_time": "2026-03-04T05:06:07Z",
        "args": ["./build/all_reduce_perf", "-b", "1K", "-J", "out.json"],
        "config": {"nthreads": 1, "ngpus": 8, "devices": ranks},
        "results": results,
        "out_of_bounds": {"count": 0, "okay": True},
        "average_bus_bandwidth": {"bandwidth": 212.378},
    }
    (run,) = read(json.dumps(document, indent=2), "out.json")
    assert read(json.dumps(document | {"env": ["A=" + "b" * 100_000]}), "out.json") == [run]
    expect_figures(run, "all_reduce")
    assert (len(run.samples), run.nodes, run.device) == (40, 1, "H100")


def test_json_and_csv_of_rccl_tests(read):
    rows = [
        {"numCycle": 0, "name": "AllGather", "nodes": 1, "ranks": 8, "ranksPerNode": 8}
        | {"gpusPerRank": 1, "size": size, "type": "float", "redop": "none", "inPlace": place}
        | figures
        | {"wrong": "0"}
        for size, _, figures in list_results("all_gather")
        for place in (0, 1)
    ]
    (run,) = read(json.dumps(rows), "out.json")
    expect_figures(run, "all_gather")
    head = ",".join(rows[0]).replace("wrong", "#wrong")
    table = "\n".join([head, *(",".join(map(str, row.values())) for row in rows)])
    (same,) = read(table, "out.csv")
    assert same.samples == run.samples
    expect_figures(same, "all_gather")


@pytest.mark.parametrize(
    "again", ["time,algbw,busbw", "in_place_time,in_place_algbw,in_place_busbw"]
)
def test_figures_in_place_of_a_table(again, read):
    """By their place or by their names: in the same units, and with wrong results of their own."""
    head = f"name,ranks,size,time(us),algbw,busbw,#wrong,{again},#wrong\n"
    figures = "{},10.49,18.35"
    row = f"AllReduce,8,1048576,{figures.format(100)},5,{figures.format(101)},0\n"
    (run,) = read(head + row, "out.csv")
    assert [sample.seconds for sample in run.samples] == pytest.approx([1e-4, 1.01e-4])
    assert run.wrong == 1


@pytest.mark.parametrize("nothing", [None, "N/A"])
def test_what_was_not_measured_is_left_out(nothing, read):
    rows = [
        {
            "name": "AllReduce",
            "ranks": 8,
            "size": size,
            "time": time,
            "algBw": 10.49,
            "busBw": 18.35,
        }
        for size, time in ((1048576, 100), (2097152, nothing))
    ]
    (run,) = read(json.dumps(rows), "out.json")
    assert len(run.samples) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"results": 7}',
        '{"results": [{"size": "x", "time": 1}]}',
        '{"a": 1',
        f'[{{"size": 1, "time": {"9" * 400}, "algBw": 1, "busBw": 1}}]',
    ],
)
def test_hostile_json(text, read):
    with pytest.raises(InputError):
        read(text, "all_reduce.json")


OSU_FULL = """
# OSU MPI-CUDA Allgather Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations   P50 Tail Lat(us)
1                      21.05             20.11             22.17        1000              21.01
1048576               410.52            405.00            415.00         100             410.00
"""
OSU_SHORT = "# Size  Avg Latency(us)  Min  Max  Iterations\n8  9.55  9.11  9.9  1000\n"
OSU_RATE = """
# OSU MPI Multiple Bandwidth / Message Rate Test v5.6.2
# [ pairs: 1 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1048576             12000.00          11444.09
"""
OSU_BOTH = """
# OSU MPI-CUDA Bi-Directional Bandwidth Test v7.1
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1048576             24000.00
"""
OSU_PUT = """
# OSU MPI_Put Bandwidth Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Size      Bandwidth (MB/s)
1048576             12000.00
"""
RULE = 87 * "-"
PERFTEST = (
    RULE
    + "\n                    RDMA_Write {way}BW Test\n"
    + RULE
    + """
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Mtu             : 4096[B]
 CQ Moderation   : 100
 remote address: LID 0x10 QPN 0x0049 PSN 0xb1ad76 RKey 0x181900 VAddr 0x007f2d5a800000
"""
    + RULE
    + """
 #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]   CPU_Util[%]
Conflicting CPU frequency values detected: 2600.000000 != 3400.000000. CPU Frequency is not max.
 1048576    5000             {rate:.2f}            {rate:.2f}\t\t   0.011444\t    3.12
"""
    + RULE
    + "\n"
)
PERFTEST_WAIT = f"""{RULE}
 #bytes        #iterations       t_avg[usec]    tps average
 2             1000000            1.13           885000.00
{RULE}
"""
MESSAGES = {
    "all figures of OSU": (OSU_FULL, "all_gather", [(8, 21.05e-6), (8 * 2**20, 410.52e-6)]),
    "short names": (f"# OSU MPI Latency Test v7.4\n{OSU_SHORT}", "send", [(8, 9.55e-6)]),
    "no title": (OSU_SHORT, "send", [(8, 9.55e-6)]),
    "tags": (
        "\n".join(f"[1,0]<stdout>:{line}" for line in OSU_FULL.splitlines()),
        "all_gather",
        [(8, 21.05e-6), (8 * 2**20, 410.52e-6)],
    ),
    "message rates": (OSU_RATE, "send", [(2**20, 2**20 / 12e9)]),
    "both ways": (OSU_BOTH, "send", [(2**20, 2**20 / 12e9)]),
    "one-sided": (OSU_PUT, "send", [(2**20, 2**20 / 12e9)]),
    "MB/sec": (
        PERFTEST.format(way="", unit="MB/sec", rate=11444.09),
        "send",
        [(2**20, 1 / 11444.09)],
    ),
    "MiB/sec": (
        PERFTEST.format(way="", unit="MiB/sec", rate=11444.09),
        "send",
        [(2**20, 1 / 11444.09)],
    ),
    "Gb/sec both ways": (
        PERFTEST.format(way="Bidirectional ", unit="Gb/sec", rate=384.0),
        "send",
        [(2**20, 2**20 / 24e9)],
    ),
    "latency over time": (PERFTEST_WAIT, "send", [(2, 1.13e-6)]),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_figures_of_messages(name, read):
    text, collective, samples = MESSAGES[name]
    (run,) = read(text, "log.txt", 8)
    assert run.collective == collective
    assert [row.size for row in run.samples] == [size for size, _ in samples]
    assert [row.seconds for row in run.samples] == pytest.approx([time for _, time in samples])


def test_several_tests_of_osu_in_one_file(read):
    runs = read(OSU_BOTH + OSU_PUT + OSU_FULL, pes=8)
    assert [(run.collective, len(run.samples)) for run in runs] == [
        ("send", 1),
        ("send", 1),
        ("all_gather", 2),
    ]
    assert runs[0].samples == runs[1].samples
