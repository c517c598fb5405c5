"""What an imported machine does not believe: files that disagree, rows that show too little.

Figures are made by lines of latency and bandwidth, laid out as nccl-tests, OSU and NCCL write them.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from paradl.grids.library import find

BUS = "0000:{:02x}:00.0"
SWITCH = ("0000:05:00.0", 18, "0x068000")
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"


def write_topology(gpus: list[list[Any]], sm: int = 90, speed: str = "400000") -> str:
    """gpus: of each, its links as target, count and class; a number is another GPU."""

    def link(target: Any, count: Any, tclass: str = "0x030200") -> str:
        place = BUS.format(target) if isinstance(target, int) else target
        return f'<nvlink target="{place}" count="{count}" tclass="{tclass}"/>'

    devices = "".join(
        f'<pci busid="{BUS.format(n)}"><gpu dev="{n}" sm="{sm}">'
        f"{''.join(link(*each) for each in links)}</gpu></pci>"
        for n, links in enumerate(gpus)
    )
    nic = f'<nic><net name="a" speed="{speed}"/></nic>'
    return f'<system version="1"><cpu>{devices}{nic}</cpu></system>'


def write_log(
    name: str = "all_reduce",
    pes: int = 8,
    sizes: list[int] | None = None,
    *,
    device: str = H100,
    latency: float = 2e-6,
    bandwidth: float = 400e9,
    factors: dict[int, float] | None = None,
) -> str:
    """Rows of a line, each time the factor of its size."""
    steps = {"all_reduce": 2, "all_gather": 1}[name] * (pes - 1)
    lines = [f"# Collective test starting: {name}_perf"]
    lines += [
        f"#  Rank {n} Group 0 Pid {n} on host{n // 8} device {n % 8} [0x1b] {device}"
        for n in range(pes)
    ]
    lines += [
        "# size count type redop root time algbw busbw #wrong",
        "# (B) (elements) (us) (GB/s) (GB/s)",
    ]
    for size in sizes or [1 << n for n in range(10, 33)]:
        seconds = (steps or 1) * (latency + size / pes / bandwidth) * (factors or {}).get(size, 1.0)
        rate = size / seconds
        figures = f"{1e6 * seconds:.4f} {rate / 1e9:.3f} {rate * steps / pes / 1e9:.3f} 0"
        lines.append(f"{size} {size // 4} float sum -1 {figures}")
    return "\n".join([*lines, "# Avg bus bandwidth : 1"])


def write_smi(name: str, count: int = 8, memory: str = "") -> str:
    return "name, memory.total [MiB]\n" + count * f"{name}, {memory or '81559 MiB'}\n"


@pytest.fixture
def import_files(cli, tmp_path):
    """Import texts by name; return exit code, JSON, stderr, and the machine or None."""

    def run(files: dict[str, str], *options: Any):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        output = tmp_path / "mine.yaml"
        paths = [tmp_path / name for name in files]
        code, _, err = cli("import", "machine", *paths, *options, "-o", output)
        assert output.is_file() == (code == 0), err
        assert code == 0 or len(err.splitlines()) == 1
        return code, err, find("system", str(output), tmp_path) if code == 0 else None

    return run


PAIRS = [[(1, 12)], [(0, 12)], [(3, 12)], [(2, 12)]]
RING = [[((n + 1) % 4, 6), ((n - 1) % 4, 6)] for n in range(4)]


@pytest.mark.parametrize(
    ("gpus", "like", "reason"),
    [
        (PAIRS, "dgx-a100", "0-1, 2-3"),
        ([[(1, 4)], [(0, 4)], []], "dgx-a100", "0-1"),
        (4 * [[]], "dgx-a100", "other links"),
        (4 * [[(n, 1) for n in range(4)]], "dgx-a100", "other links"),  # 100 GB/s of 300
        (RING, "dgx-a100", ""),
        (4 * [[SWITCH]], "dgx-a100", ""),
    ],
)
def test_a_node_is_not_taken_to_have_links_that_it_has_not(gpus, like, reason, import_files):
    topology = write_topology(gpus, sm=80)
    code, err, machine = import_files({"topology.xml": topology}, "--like", like)
    assert code == (2 if reason else 0), err
    assert reason in err
    # A log of all its GPUs tells, whatever joins them.
    log = write_log(pes=len(gpus), bandwidth=12e9, device=A100)
    files = {"topology.xml": topology, "all_reduce.txt": log}
    code, err, machine = import_files(files, "--links-per-node", 1)
    assert machine is not None, err
    assert machine.levels[0].bandwidth == pytest.approx(12e9, rel=0.02)


def test_a_pair_may_be_a_node(import_files):
    """Its NVLinks inside it, and the measured ring of all four as the network."""
    files = {
        "topology.xml": write_topology(PAIRS, sm=80),
        "log.txt": write_log(pes=4, bandwidth=12e9, device=A100),
    }
    options = ("--like", "dgx-a100", "--pes-per-node", 2, "--links-per-node", 1)
    code, err, machine = import_files(files, *options)
    assert code == 0, err
    node, network = machine.levels
    assert (node.pes, node.bandwidth) == (2, 300e9)
    assert (network.pes, network.bandwidth) == (4, pytest.approx(12e9, rel=0.02))
    assert "assumed: as dgx-a100" in err


TOPOLOGY = write_topology(8 * [[SWITCH]])
DISAGREE: dict[str, tuple[dict[str, str], list[Any], str]] = {
    "nvidia-smi and a log": ({"smi": write_smi(H100), "log": write_log(device=A100)}, [], "A100"),
    "a card that the catalogue lacks": (
        {"smi": write_smi("NVIDIA A100-PCIE-40GB", memory="40960 MiB"), "log": write_log()},
        [],
        "A100-PCIE",
    ),
    "two logs": (
        {"log": write_log(), "gather": write_log("all_gather", device=A100)},
        [],
        "disagree on the GPU",
    ),
    "two capacities": (
        {"smi": write_smi(A100.replace("40", "80")), "log": write_log(device=A100)},
        [],
        "40GB",
    ),
    "a name and its capacity": (
        {"smi": write_smi(A100), "log": write_log(device=A100)},
        [],
        "40 GB",
    ),
    "capacities of one node": (
        {"smi": write_smi("NVIDIA H100", 4) + "NVIDIA H100, 40960 MiB\n"},
        ["--like", "dgx-h100"],
        "one kind",
    ),
    "--like and a log": ({"log": write_log()}, ["--like", "dgx-a100"], "such as dgx-h100"),
    "nvidia-smi and ranks": ({"smi": write_smi(H100, 4), "log": write_log()}, [], "4 .*and 8"),
    "nvidia-smi and a topology": (
        {"smi": write_smi(H100, 4), "topology.xml": TOPOLOGY, "log": write_log(pes=4)},
        [],
        "4 .*and 8",
    ),
    "two topologies": (
        {"a.xml": TOPOLOGY, "b.xml": write_topology(4 * [[SWITCH]]), "log": write_log(pes=4)},
        [],
        "4 .*and 8",
    ),
    "an option and ranks": ({"log": write_log()}, ["--pes-per-node", 4], "4 .*and 8"),
}


@pytest.mark.parametrize("name", DISAGREE)
def test_files_that_disagree_are_refused(name, import_files):
    files, options, reason = DISAGREE[name]
    code, err, _ = import_files(files, *options)
    assert code == 2
    assert re.search(reason, err), err


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA RTX A6000", "RTX A6000"),
    ],
)
def test_one_card_in_other_words_is_one(one, other, import_files):
    files = {
        "smi": write_smi(one, 8, "40960 MiB" if "40GB" in one else ""),
        "log": write_log(device=other),
    }
    like = ["--like", "l40s"] if "A6000" in one else []
    _, err, machine = import_files(files, *like)
    assert machine is not None, err


def test_ranks_may_leave_gpus_idle(import_files):
    _, err, machine = import_files({"smi": write_smi(H100), "log": write_log(pes=4)})
    assert machine is not None, err
    assert machine.pes_per_node == 8


SMALL, MIDDLE, BIG = [1 << 10, 1 << 11], [1 << 20, 1 << 26], [1 << 30, 1 << 32]
LIKE = find("system", "dgx-h100", Path()).levels[0]


@pytest.mark.parametrize(
    ("sizes", "open_key"),
    [
        (BIG, "latency"),
        (BIG[:1], "latency"),
        (SMALL, "bandwidth"),
        (SMALL[:1], "bandwidth"),
        (MIDDLE, ""),
    ],
)
def test_what_the_sizes_leave_open_is_assumed_or_refused(sizes, open_key, import_files):
    log = {"log.txt": write_log(sizes=sizes)}
    code, err, machine = import_files(log)
    assert code == (2 if open_key else 0), err
    if open_key:
        assert "leave open" in err
        assert "-b 1K -e 4G" in err
    _, err, machine = import_files(log, "--like", "dgx-h100")
    assert machine is not None, err
    level = machine.levels[0]
    assert level.collectives is not None
    assert level.collectives.all_reduce is not None
    (line,) = level.collectives.all_reduce
    for key, measured in (("latency", 2e-6), ("bandwidth", 400e9)):
        expected = getattr(LIKE, key) if key == open_key else measured
        assert getattr(line, key) == pytest.approx(expected, rel=0.05)
        assert getattr(level, key) == getattr(line, key)
        assert (f"assumed: {key} as dgx-h100" in err) == (key == open_key)


@pytest.mark.parametrize("sizes", [BIG[:1], MIDDLE, [*SMALL, *MIDDLE, *BIG]])
def test_a_fit_of_few_sizes_is_noted(sizes, import_files):
    _, err, machine = import_files({"log.txt": write_log(sizes=sizes)}, "--like", "dgx-h100")
    assert machine is not None, err
    assert ("too few" in err) == (len(sizes) < 3)


@pytest.mark.parametrize(
    ("like", "keys"),
    [
        ("dgx-h100:software=fsdp,overlap_gradients=off", ["software", "switches"]),
        ("abci:channels=last", ["software", "channels", "staging", "contention"]),
    ],
)
def test_what_no_log_states_is_as_the_machine_named(like, keys, import_files):
    model = find("system", like, Path())
    log = write_log(pes=4, device="")
    _, err, machine = import_files({"log.txt": log}, "--like", like)
    assert machine is not None, err
    for key in keys:
        assert getattr(machine, key) == getattr(model, key)
        assert f"{key}: assumed: as {like}" in err


@pytest.mark.parametrize(
    ("like", "name", "memory"),
    [
        ("rtx3090", "NVIDIA GeForce RTX 3090", "24576 MiB"),
        ("dgx1-v100", "Tesla V100-SXM2-16GB", "16160 MiB"),
    ],
)
def test_a_node_that_no_run_shows_is_the_one_named(like, name, memory, import_files):
    _, err, machine = import_files({"smi.csv": write_smi(name, memory=memory)}, "--like", like)
    assert machine is not None, err
    model = find("system", like, Path())
    assert (machine.levels[0], machine.mesh) == (model.levels[0], model.mesh)


@pytest.mark.parametrize(("total", "node"), [(25e-6, 1.12e-6), (40e-6, 1.8e-6), (60e-6, 3.4e-6)])
def test_two_nodes_may_take_less_than_the_node_that_is_assumed(total, node, import_files):
    """7 latencies inside and one between, twice, make the total; dgx-h100 has 3.4 and 14 us."""
    files = {"two.txt": write_log(pes=16, latency=total / 30, bandwidth=380e9)}
    options = ("--like", "dgx-h100", "--pes-per-node", 8, "--links-per-node", 8)
    _, err, machine = import_files(files, *options)
    assert machine is not None, err
    inside, between = (level.latency for level in machine.levels)
    assert inside == pytest.approx(node, rel=0.02)
    assert 2 * (7 * inside + between) == pytest.approx(total, rel=0.02)
    assert ("3.4 us; add" in err) == (node < 3.4e-6)


OSU = "# OSU MPI-CUDA {} Test v7.4\n# Size  {}\n{} {}\n"
LATENCY, LARGE_LATENCY = (
    OSU.format("Latency", "Latency (us)", *row) for row in ((8, 3.58), (1 << 22, 170.0))
)
RATE, SMALL_RATE = (
    OSU.format("Bandwidth", "Bandwidth (MB/s)", *row) for row in ((1 << 22, 24000.0), (8, 2.2))
)


@pytest.mark.parametrize(
    ("latency", "rate", "reason"),
    [(LARGE_LATENCY, RATE, "latency"), (LATENCY, SMALL_RATE, "bandwidth"), (LATENCY, RATE, "")],
)
def test_messages_of_one_end_show_half(latency, rate, reason, import_files):
    files = {"log": write_log(), "osu_latency": latency, "osu_bw": rate}
    code, err, _ = import_files(files, "--size", 64, "--links-per-node", 8)
    assert code == (2 if reason else 0), err
    assert f"leave open the {reason}" in err or not reason


def test_lone_rings_of_one_size_show_half(import_files):
    lone = "".join(
        line.replace("on host", f"on host{n - 1}") + "\n"
        for n, line in enumerate(write_log(pes=2, sizes=[1 << 30]).splitlines())
    )
    files = {"log": write_log(), "network": lone}
    code, err, _ = import_files(files, "--size", 64, "--links-per-node", 8)
    assert code == 2
    assert "leave open the latency" in err


SCATTER = {1 << n: (4.0 if n % 2 else 0.5) for n in range(10, 33)}
UNFIT: dict[str, dict[str, str]] = {
    "two machines": {"a": write_log(), "b": write_log(bandwidth=100e9)},
    "scatter": {"a": write_log(factors=SCATTER)},
    "a large size": {"a": write_log(factors={1 << 30: 2.5})},
}


@pytest.mark.parametrize("name", UNFIT)
def test_rows_that_no_line_fits_are_refused(name, import_files):
    code, err, _ = import_files(UNFIT[name])
    assert code == 2
    assert "fit all_reduce" in err
    assert "log" in err


def test_a_first_row_that_warms_up_is_marked(import_files, tmp_path):
    code, _, _ = import_files({"log": write_log(factors={1 << 10: 2.6})})
    assert code == 0
    assert re.search(r"off by up to 1[56]\d %", (tmp_path / "mine.yaml").read_text())


ONE_RANK = write_log(pes=2).replace("Rank 1", "Rnk 1")
HOSTILE: dict[str, tuple[str, str]] = {
    "one rank": ("all_reduce.txt", ONE_RANK),
    "one rank without figures of its bus": ("all_reduce.txt", write_log(pes=1)),
    "a long field": (
        "smi.csv",
        f'name, memory.total [MiB]\n"{"x" * 50_000}\n{"y" * 150_000}", 1\n',
    ),
    "a quote that never ends": ("smi.csv", 'name, memory.total [MiB]\n"A100, 8 MiB\n' * 3),
    "digits of links": ("a.xml", write_topology([[(0, "9" * 4000)]])),
    "more digits of links": ("a.xml", write_topology([[(0, "9" * 9000)]])),
    "links below 0": ("a.xml", write_topology([[(0, -18)]])),
    "half of a matrix": ("topo.txt", "\tGPU0\tGPU1\nGPU0\t X \tNV18\n"),
    "a row of a matrix": ("topo.txt", "\tGPU0\tGPU1\nGPU0\t X \n"),
    "no number of links": ("a.xml", write_topology([[(0, "nan")]])),
    "an endless speed": ("a.xml", write_topology(2 * [[SWITCH]], speed="inf")),
    "a speed below 0": ("a.xml", write_topology(2 * [[SWITCH]], speed="-1e5")),
    "a capability below 0": ("a.xml", write_topology(2 * [[SWITCH]], sm=-90)),
    "an enormous machine": (
        "all_reduce.json",
        json.dumps([{"ranks": 10**400, "size": 1024, "time": 1, "algBw": 1.02, "busBw": 1}]),
    ),
    "nodes below 0": (
        "all_reduce.json",
        json.dumps(
            [
                {
                    "ranks": 2,
                    "nodes": -1,
                    "size": 1 << 20,
                    "time": 10,
                    "algBw": 104.86,
                    "busBw": 104.86,
                }
            ]
        ),
    ),
    "PEs of 300 digits": (
        "all_reduce.csv",
        f"size,pes,time(us),algbw(GB/s),busbw(GB/s)\n1048576,{'9' * 300},100,10.49,20.97\n",
    ),
    "half of the figures in place": (
        "all_reduce.csv",
        "size,time,algbw,busbw,time,busbw\n1048576,100,10.49,18.35,100,18.35\n",
    ),
    "a size of 300 digits": (
        "all_reduce.csv",
        "size,time(us),algbw,busbw\n1e300,1e300,1e-3,1e-3\n",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_figures_of_no_machine_are_one_message(name, import_files):
    file, text = HOSTILE[name]
    code, err, _ = import_files({file: text}, "--like", "dgx-h100")
    assert code == 2
    assert file in err
    assert len(err) < 1000
