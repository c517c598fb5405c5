"""Machines from logs: what is read, what fits, what is asked for, what is refused.

The files in `data` are written by hand and by a script in the formats that the tools document:
nccl-tests' src/common.cu, the OSU micro-benchmarks 7.4, perftest's result lines, NCCL's xml.cc.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from paradl.grids.entries.connections import Collectives
from paradl.grids.library import find
from paradl.sweep.importing.machines.devices import find_machine, read_topology, with_memory
from paradl.sweep.importing.machines.fit import predict
from paradl.sweep.importing.machines.messages import read_messages
from paradl.sweep.importing.machines.nccl import read_nccl
from paradl.sweep.importing.machines.nccl_records import read_table
from paradl.sweep.importing.machines.read import read_evidence

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "files" / "your-machine"
LOGS = {path.name: path for folder in ("data", PAGE) for path in (HERE / folder).iterdir()}


def import_system(cli, output: Path, *arguments):
    logs = [LOGS.get(str(argument), argument) for argument in arguments]
    return cli("import", "machine", *logs, "-o", output)


def test_a_log_of_nccl_tests_as_text_and_as_a_table_is_the_same():
    (text,) = read_nccl(LOGS["all_reduce_8.txt"], None)
    (table,) = read_table(LOGS["all_reduce_8.csv"], None)
    assert (text.collective, text.pes, text.nodes) == ("all_reduce", 8, 1)
    # The table states no ranks: busbw over algbw, 2 (q-1)/q, does.
    assert (table.collective, table.pes) == ("all_reduce", 8)
    assert table.samples == text.samples
    assert text.samples[0].size == 1024
    assert "H100" in text.device


def test_hosts_of_ranks_are_nodes():
    (run,) = read_nccl(LOGS["all_reduce_32.txt"], None)
    assert (run.pes, run.nodes) == (32, 4)


def test_messages_have_the_units_of_their_tools():
    (bandwidth,) = read_messages(LOGS["osu_bw.txt"], None)
    assert bandwidth.samples[-1].seconds == pytest.approx(4194304 / 24581.03e6)
    (latency,) = read_messages(LOGS["osu_latency.txt"], None)
    assert latency.samples[0].seconds == pytest.approx(3.58e-6)
    (wide,) = read_messages(LOGS["ib_write_bw.txt"], None)
    assert wide.samples[-1].seconds == pytest.approx(8388608 / (196.97e9 / 8))
    (typical,) = read_messages(LOGS["ib_write_lat.txt"], None)
    assert typical.samples[0].seconds == pytest.approx(1.08e-6)
    (collective,) = read_messages(LOGS["osu_allreduce.txt"], 8)
    assert (collective.collective, collective.pes) == ("all_reduce", 8)


def test_a_run_of_half_nodes_is_not_used(cli, tmp_path):
    """Eight PEs in two nodes of eight: the oracle would put them into one."""
    text = LOGS["all_reduce_8.txt"].read_text()
    for rank in range(4, 8):
        text = text.replace(f"node00 device  {rank}", f"node01 device  {rank}")
    (tmp_path / "half.txt").write_text(text)
    options = ("--pes-per-node", 8, "--links-per-node", 8, "--size", 64, "--like", "dgx-h100")
    output = tmp_path / "mine.yaml"
    code, _, err = import_system(cli, output, tmp_path / "half.txt", *options)
    assert code == 0, err
    assert "not used" in err
    system = find("system", str(output), tmp_path)
    assert [level.collectives for level in system.levels] == [None, None]


def test_a_topology_counts_links_and_adapters():
    topology = read_topology(LOGS["topology.xml"])
    assert (topology.gpus, topology.nvlinks, len(topology.adapters)) == (2, 18, 2)
    assert topology.nvlink_bandwidth == pytest.approx(450e9)
    assert topology.adapters["mlx5_0:1"] == pytest.approx(50e9)


def test_adapters_for_storage_are_not_counted(tmp_path):
    text = (LOGS["topology.xml"]).read_text().replace('speed="400000"', 'speed="25000"', 1)
    (tmp_path / "topology.xml").write_text(text)
    assert read_topology(tmp_path / "topology.xml").links == [50e9]


@pytest.mark.parametrize("head", ["", "index, name, memory.total [MiB]\n"])
def test_devices_with_other_heads_or_none(head, tmp_path):
    rows = [f"{f'{n}, ' if head else ''}NVIDIA H100 80GB HBM3, 81559 MiB\n" for n in range(8)]
    (tmp_path / "smi.csv").write_text(head + "".join(rows))
    (device,) = read_evidence([tmp_path / "smi.csv"], None).devices
    assert (device.name, device.count) == ("NVIDIA H100 80GB HBM3", 8)
    assert device.memory == 81559 * 2**20


# Names and totals as nvidia-smi and rocm-smi print them (some differ by driver), and the machine.
CARDS = [
    ("NVIDIA H100 80GB HBM3", 81559, "dgx-h100"),
    ("NVIDIA H100 PCIe", 81559, "h100-pcie"),
    ("NVIDIA H100 NVL", 95830, "h100-nvl"),
    ("NVIDIA GH200 480GB", 97871, "gh200"),
    ("NVIDIA H200", 143771, "dgx-h200"),
    ("NVIDIA H200 NVL", 143771, "h200-nvl"),
    ("NVIDIA B200", 183359, "dgx-b200"),
    ("NVIDIA GB200", 189471, "gb200-nvl72"),
    ("NVIDIA B300 SXM6 AC", 275040, "dgx-b300"),
    ("NVIDIA GB300", 284208, "gb300-nvl72"),
    ("A100-SXM4-40GB", 40536, "dgx-a100"),
    ("NVIDIA A100-SXM4-40GB", 40960, "dgx-a100"),
    ("NVIDIA A100-SXM4-80GB", 81920, "dgx-a100-80gb"),
    ("Tesla V100-SXM2-16GB", 16160, "dgx1-v100"),
    ("Tesla V100-SXM2-32GB", 32510, "dgx1-v100-32gb"),
    ("Tesla V100-SXM3-32GB", 32768, "dgx2-v100"),
    ("Tesla P100-SXM2-16GB", 16280, "dgx1-p100"),
    ("NVIDIA L40S", 46068, "l40s"),
    ("NVIDIA A10", 23028, "a10"),
    ("NVIDIA GeForce RTX 3090", 24576, "rtx3090"),
    ("NVIDIA GeForce RTX 4090", 24564, "rtx4090"),
    ("AMD Instinct MI300X", 196592, "mi300x"),
    ("AMD Instinct MI355X", 294896, "mi355x"),
]


@pytest.mark.parametrize(("name", "mebibytes", "machine"), CARDS)
def test_a_card_has_one_capacity_by_either_door(name, mebibytes, machine):
    system = find("system", machine, HERE)
    found = find_machine(name)
    assert found == system
    for memory in (mebibytes * 2.0**20, None):
        assert with_memory(found.pe, name, memory) == system.pe


def test_another_variant_of_a_card_has_the_memory_that_was_measured(cli, tmp_path):
    """As the A100 and H100 of 64 and 96 GB that some sites have."""
    capacities = []
    for mebibytes in (81559, 97871):
        (tmp_path / "smi.csv").write_text(f"name, memory.total [MiB]\nH100 SXM, {mebibytes} MiB\n")
        output = tmp_path / "mine.yaml"
        code, _, err = import_system(cli, output, tmp_path / "smi.csv", "all_reduce_8.txt")
        assert code == 0, err
        capacities.append(find("system", str(output), tmp_path).pe.memory_capacity)
        assert ("measured: nvidia-smi" in output.read_text()) == (mebibytes == 97871)
    usual = find("system", "dgx-h100", tmp_path).pe.memory_capacity
    assert capacities == [usual, 97871 * 2**20]


@pytest.mark.parametrize(
    "name",
    [
        *("NVIDIA A10G", "NVIDIA A100-PCIE-40GB", "NVIDIA GH200 144G HBM3e", "NVIDIA L40"),
        *("NVIDIA GeForce RTX 4090 D", "Tesla V100-PCIE-16GB", "NVIDIA H20"),
    ],
)
def test_a_card_of_other_peaks_is_no_catalogued_one(name):
    assert find_machine(name) is None


def test_a_machine_predicts_the_collectives_of_its_logs(cli, tmp_path):
    """Within 10 %, median above 1 MB: by a formula written out here, and by the oracle."""
    output = tmp_path / "mine.yaml"
    logs = ("all_reduce_8.txt", "all_gather_8.txt", "all_reduce_32.txt")
    code, out, err = import_system(cli, output, *logs, "--links-per-node", 8, "--format", "json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    assert [row["pes"] for row in rows] == [8, 8, 32]
    assert all(row["median_error_above_1MB"] < 0.1 for row in rows)
    system = find("system", str(output), tmp_path)
    assert (system.pes_per_node, system.pe.device, system.most_pes) == (8, "h100", 32)
    assert all(f"{key}: " in output.read_text() for key in ("precision", "links_per_node"))
    node, network = (level.collectives or Collectives() for level in system.levels)
    for name, collective, steps in (("all_reduce_8", "all_reduce", 14), ("all_gather_8", "", 7)):
        (run,) = read_nccl(LOGS[f"{name}.txt"], None)
        lines = (node.all_reduce if collective else node.all_gather) or ()
        sizes = np.array([row.size for row in run.samples])
        by_hand = min_over(steps * (line.latency + sizes / 8 / line.bandwidth) for line in lines)
        assert predict(system, run) == pytest.approx(by_hand)
        measured = np.array([row.seconds for row in run.samples])
        assert np.median(np.abs(by_hand / measured - 1)[sizes > 1e6]) < 0.1
    # Gradients of one bucket on one node: the oracle's own answer.
    settings = ("--set", "overlap=0", "--set", "bucket=10 GB", "--format", "json")
    options = (
        "--model",
        "resnet50",
        "--dataset",
        "imagenet",
        "--strategy",
        "data",
        "--pe",
        8,
    )
    code, out, err = cli("predict", "--system", output, *options, "--batch", 32, *settings)
    assert code == 0, err
    m = 2 * (25_557_032 - 27_560)  # weights of two bytes; biases are not sent
    expected = min(14 * (line.latency + m / 8 / line.bandwidth) for line in node.all_reduce or ())
    answer = json.loads(out)
    iterations = answer["epoch_time"] / answer["iteration_time"]
    assert answer["terms"]["gradient_exchange"] / iterations == pytest.approx(expected, rel=1e-6)
    assert network.all_reduce


def min_over(times):
    return np.min([*times], axis=0)


def test_messages_between_nodes_are_the_network(cli, tmp_path):
    output = tmp_path / "mine.yaml"
    logs = ("all_reduce_8.txt", "osu_latency.txt", "osu_bw.txt", "topology.xml")
    code, _, err = import_system(cli, output, *logs, "--pes-per-node", 8, "--size", 64)
    assert code == 0, err
    system = find("system", str(output), tmp_path)
    assert (system.links_per_node, system.most_pes) == (2, 64)
    assert system.levels[1].latency == pytest.approx(3.58e-6)
    assert system.levels[1].bandwidth == pytest.approx(24.58e9)


LOG = (LOGS["all_reduce_8.txt"]).read_text()
ENTITIES = '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><system><gpu>&d;</gpu></system>'
TABLE = "size,time(us),algbw(GB/s),busbw(GB/s)\n"
# The file's name, its text, and what the message says: where, and the reason.
REFUSED = {
    "cut": ("all_reduce.txt", LOG[:3000], ":32: "),
    "decimal commas": ("all_reduce.txt", LOG.replace(".", ","), "decimal comma"),
    "another unit": ("all_reduce.txt", LOG.replace("(us)", "(ms)"), "units"),
    "no rows": ("all_reduce.txt", "\n".join(LOG.splitlines()[:16]), "no"),
    "another collective": ("all_gather.txt", "\n".join(LOG.splitlines()[1:]), "busbw"),
    "no collective": ("log.csv", f"{TABLE}1048576,100,10.49,10.49\n", "which collective"),
    "no PEs": ("broadcast.csv", f"{TABLE}1048576,100,10.49,10.49\n", "--pe"),
    "a semicolon and commas": ("all_reduce.csv", f"{TABLE}1048576,100,10,49,10,49\n", "fields"),
    "a missing column": ("all_reduce.csv", "size,time(us)\n1024,10\n", "algbw"),
    "another text": ("notes.txt", "nothing\n" * 3000, "format"),
    "a long line": ("log.txt", "x" * 100_000, "bytes"),
    "entities": ("topology.xml", ENTITIES, "entities"),
    "half a topology": ("topology.xml", (LOGS["topology.xml"]).read_text()[:500], "XML"),
    "no GPU": ("topology.xml", "<system></system>", "GPU"),
    "an unknown device": ("smi.csv", "name, memory.total [MiB]\nNVIDIA X9, 8 MiB\n", "--like"),
    "endless memory": ("smi.csv", f"name, memory.total [MiB]\nH100, {'9' * 400}\n", "MiB"),
    "two devices": ("smi.csv", "name, memory.total [MiB]\nA, 8 MiB\nB, 8 MiB\n", "kind"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_one_message_and_no_file(name, cli, tmp_path):
    file, text, reason = REFUSED[name]
    (tmp_path / file).write_text(text)
    output = tmp_path / "mine.yaml"
    code, out, err = cli("import", "machine", tmp_path / file, "-o", output)
    assert (code, out) == (2, "")
    assert reason in err
    assert len(err.splitlines()) == 1
    assert len(err) < 1000
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_a_log_without_its_end_is_noted(cli, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("\n".join(LOG.splitlines()[:30]))
    code, _, err = cli("import", "machine", log, "-o", tmp_path / "mine.yaml")
    assert code == 0
    assert "cut off" in err


def test_the_output_is_no_input(cli, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text(LOG)
    code, _, _ = cli("import", "machine", log, "-o", log)
    assert code == 2
    assert log.read_text() == LOG


def test_columns_of_old_versions(tmp_path):
    """Without root, and with the error in the place of #wrong."""
    log = tmp_path / "all_gather.txt"
    log.write_text(
        "#   Rank  0 Pid  12 on  host device  0 [0x07] Tesla V100-SXM2-16GB\n"
        "#   Rank  1 Pid  12 on  host device  1 [0x0a] Tesla V100-SXM2-16GB\n"
        "#  size  count  type  time  algbw  busbw  error  time  algbw  busbw  error\n"
        "#  (B)  (elements)  (us)  (GB/s)  (GB/s)  (us)  (GB/s)  (GB/s)\n"
        "  1048576  262144  float  52.43  20.00  10.00  0e+00  52.43  20.00  10.00  1e-07\n"
    )
    (run,) = read_nccl(log, None)
    assert (run.collective, run.pes, run.nodes) == ("all_gather", 2, 1)
    assert [row.seconds for row in run.samples] == pytest.approx([52.43e-6] * 2)


@pytest.mark.parametrize("rows", [2, 3])
def test_few_rows_are_fitted(rows, cli, tmp_path):
    lines = LOG.splitlines()
    log = tmp_path / "log.txt"
    kept = [line for line in lines if " float " in line][:: 22 // (rows - 1) - 2]
    log.write_text("\n".join([*lines[:16], *kept[:rows], *lines[-3:]]))
    output = tmp_path / "mine.yaml"
    code, out, err = cli("import", "machine", log, "-o", output, "--format", "json")
    assert code == 0, err
    assert json.loads(out)["rows"][0]["median_error"] < 0.1
