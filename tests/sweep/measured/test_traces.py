"""Traces of a profiler: by the definition, at any size, and with a bound on memory."""

import gzip
import json
import random
import tracemalloc
from itertools import pairwise

import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.measured.run_logs import read_trace
from paradl.sweep.measured.runs import read_runs

VALUES = (
    "values: {model: resnet50, dataset: imagenet, strategy: data, p: 8, samples_per_replica: 32}"
)
# Names as C++ and Python give them; brackets and quotes in them are text.
NAMES = ['void k<4, {"a"}, [b]>(int)', "}, {", 'x\\"', "\\\\", "]", 'ncclDevKernel_"é"', "NCCL:ü"]


def make_event(name, start, lasts, kind="kernel"):
    arguments = {"grid": [1, 1, 1], "Call stack": 'f(), "g" {', "more": {"deep": [[], {}]}}
    return {
        "ph": "X",
        "name": name,
        "ts": start,
        "dur": lasts,
        "cat": kind,
        "args": arguments,
    }


def measure(step, kernels):
    """Return seconds of a step in which only NCCL's kernels run, between all ends of spans."""
    start, end = step
    ends = sorted({start, end, *(e for k in kernels for e in k[1:] if start < e < end)})
    exposed = 0.0
    for first, last in pairwise(ends):
        running = {"nccl" in k[0].lower() for k in kernels if k[1] <= first and k[2] >= last}
        exposed += (last - first) / 1e6 if running == {True} else 0.0
    return exposed


@pytest.mark.parametrize(("packed", "indent"), [(False, None), (True, 1)])
def test_steps_of_a_large_trace_are_those_of_the_definition(packed, indent, tmp_path):
    """Events cross the blocks in which a file is read; steps and kernels overlap each other."""
    rng = random.Random(4)
    kernels = [
        (rng.choice(NAMES), start := rng.uniform(0, 1e6), start + rng.expovariate(1e-2))
        for _ in range(6000)
    ]
    steps = [(start := rng.uniform(0, 9e5), start + rng.expovariate(1e-3)) for _ in range(40)]
    events = [make_event(name, start, end - start) for name, start, end in kernels]
    spans = [
        make_event(f"ProfilerStep#{n}", start, end - start, "user_annotation")
        for n, (start, end) in enumerate(steps)
    ]
    at = rng.sample(range(len(events)), len(spans))
    for place, span in sorted(zip(at, spans, strict=True), key=lambda pair: -pair[0]):
        events.insert(place, span)
    order = [event["name"] for event in events if event["name"].startswith("Profiler")]
    document = {"deviceProperties": [{"id": 0}], "a": 1.5, "traceEvents": events, "traceName": "x"}
    text = json.dumps(document, indent=indent, ensure_ascii=False).encode()
    assert len(text) > 2**20
    path = tmp_path / ("t.json.gz" if packed else "t.json")
    path.write_bytes(gzip.compress(text) if packed else text)
    rows = [row for _, row in read_trace(path)]
    assert len(rows) == len(steps)
    for name, row in zip(order, rows, strict=True):
        start, end = steps[int(name.partition("#")[2])]
        exposed = measure((start, end), kernels)
        assert float(row["total_s"]) == pytest.approx((end - start) / 1e6)
        assert float(row.get("comm_s", 0)) == pytest.approx(exposed, abs=1e-11)
        if "comp_s" in row:  # else no kernel ran
            assert float(row["comp_s"]) == pytest.approx((end - start) / 1e6 - exposed)


def write(folder, name, data):
    (folder / "mapping.yaml").write_text(VALUES)
    (folder / name).write_bytes(data)
    return folder


def test_as_many_steps_as_kernels(tmp_path):
    """20,000 of each, which took 7 minutes where each step asked all kernels."""
    events = []
    for n in range(20_000):
        events.append({"ph": "X", "name": f"ProfilerStep#{n}", "ts": 100 * n, "dur": 100})
        kernel = {"ph": "X", "cat": "kernel", "ts": 100 * n + 10, "dur": 50}
        events.append(kernel | {"name": "nccl" if n % 3 else "gemm"})
    (run,) = read_runs(write(tmp_path, "t.json", json.dumps(events).encode()))
    assert run.measured.total == pytest.approx(1e-4)
    assert run.measured.comm == pytest.approx(5e-5)


def test_memory_does_not_grow_with_a_trace(tmp_path):
    step = json.dumps({"ph": "X", "name": "ProfilerStep#1", "ts": 0, "dur": 100})
    folder = write(tmp_path, "t.json", f"[{step}{', {}' * 2**20}]".encode())
    tracemalloc.start()
    (run,) = read_runs(folder)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert run.measured.total == pytest.approx(1e-4)
    assert peak < 40e6


# Start, repeated part, and how often.
BOMBS = {
    "empty lists": (b'{"traceEvents": [', b"[],", 2**24),
    "events": (b"[", b'{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1},', 2**20),
    "blanks": (b"", b" ", 2**26),
    "no end of a text": (b'["', b"a", 2**26),
    "no end of lists": (b"", b"[", 2**26),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_much_is_refused(name, tmp_path, cli):
    start, part, count = BOMBS[name]
    packed = gzip.compress(start + count * part)
    assert len(packed) < 2**18
    folder = write(tmp_path, "t.json.gz", packed)
    code, out, err = cli("compare", folder, "--system", "dgx-a100")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "t.json.gz: unpacks to more than" in err


DAMAGED = {
    "a cut list": '[{"ph": "X"}, {"ph": "X"',
    "a cut object": '{"traceEvents": [{"ph": "X"}',
    "words": "[{},\n no, {}]",
    "another list": '{"events": []}',
    "no list": '{"traceEvents": 7}',
    "nothing": "",
    "an event of 10 MB": f'[{{"a": "{"x" * 10**7}"}}]',
    "a deep event": "[" + "[" * 10**5 + "]" * 10**5 + "]",
    "an enormous number": f'[{{"ph": "X", "ts": {"9" * 10**5}}}]',
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_trace_is_one_message(name, tmp_path):
    with pytest.raises(InputError, match=r"t\.json"):
        read_runs(write(tmp_path, "t.json", DAMAGED[name].encode()))


def make_collective(start, kind, sent, received, of_type="BFloat16", group=8, **event):
    """Return a collective with the arguments that torch 2.13 (`_trace_validator.py`) requires."""
    arguments = {"Collective name": kind, "dtype": of_type, "Group size": group}
    arguments |= {"In msg nelems": sent, "Out msg nelems": received, "Process Group Ranks": "[0]"}
    event = {"cat": "cpu_op", "name": "record_param_comms"} | event
    return {"ph": "X", "ts": start, "dur": 10, "args": arguments} | event


PARAMETERS = 8_030_261_248  # of Llama 3 8B
BETWEEN = 2048 * 4096  # items between two of its 32 blocks


def write_llama(folder, strategy, collectives):
    """Write a trace of two steps, 8 sequences of 2,048 tokens on 8 PEs, and read it."""
    steps = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "ts": ts, "dur": 1e6}
        for n, ts in enumerate((0, 1e6))
    ]
    events = [make_collective(ts + 10, *of) for ts in (0, 1e6) for of in collectives]
    text = json.dumps({"traceEvents": [*events, *steps]})
    (folder / "t.json").write_text(text)
    (folder / "mapping.yaml").write_text(
        f"values: {{model: llama3_8b, dataset: 'pile:length=2048', strategy: '{strategy}', p: 8, "
        "samples_per_replica: 1}"
    )
    return folder


VOLUMES = {
    # Gradients of 4 bytes; a wait and a broadcast have none, and nor has a group of one.
    "data:micro=1": [
        ("allreduce", PARAMETERS - 5, PARAMETERS - 5, "Float"),
        ("allreduce_coalesced", 5, 5, "Float"),
        *(("wait", 0, 0), ("broadcast", 9, 9), ("allreduce", 9, 9, "Float", 1)),
    ],
    # Weights of 2 bytes for the forward and the backward pass.
    "data:micro=1,zero=3": [
        *[("_allgather_base", PARAMETERS // 8, PARAMETERS)] * 2,
        ("reduce_scatter_tensor_coalesced", PARAMETERS, PARAMETERS // 8, "Float"),
    ],
    # All PEs have a block's norms; two sums forward, two backward. Of a replica, 4 sequences.
    "data+tensor:tensor=2,micro=1": [
        ("allreduce", PARAMETERS // 2, PARAMETERS // 2, "Float"),
        *[("allreduce", BETWEEN, BETWEEN)] * 128,
    ],
}


@pytest.mark.parametrize("strategy", VOLUMES)
def test_bytes_of_collectives_are_those_of_a_layout(strategy, tmp_path):
    folder = write_llama(tmp_path, strategy, VOLUMES[strategy])
    (row,) = paradl.compare(folder, system="dgx-h100", calibration="none")["rows"]
    assert sum(row["measured_bytes"].values()) > 1e10
    assert row["predicted_bytes"] == pytest.approx(row["measured_bytes"], rel=1e-4)


def test_compare_prints_a_wrong_volume(tmp_path, cli):
    """Gradients in two bytes, where four are predicted."""
    folder = write_llama(tmp_path, "data:micro=1", [("allreduce", PARAMETERS, PARAMETERS)])
    code, out, err = cli("compare", folder, "--system", "dgx-h100")
    assert code == 0, err
    assert "16.06 GB" in out
    assert "32.12 GB" in out


def test_collectives_of_kernels_count_where_hosts_have_none(tmp_path):
    kernels = [
        make_collective(5, "all_to_allv", 300, 200, cat="kernel", name="ncclDevKernel_SendRecv"),
        make_collective(6, "send", 70, 70, "Float8_e4m3fn", cat="kernel", name="ncclDevKernel_X"),
        make_collective(6, "recv", 70, 70, cat="kernel", name="ncclDevKernel_X"),
    ]
    step = {"ph": "X", "name": "ProfilerStep#1", "ts": 0, "dur": 100}

    def read(*events):
        (run,) = read_runs(write(tmp_path, "t.json", json.dumps([step, *events]).encode()))
        return {name: size for name, size in run.sent.items() if size}

    assert read(*kernels) == {"all_to_all": 600, "send": 70}
    assert read(*kernels, make_collective(7, "allreduce", 4, 4)) == {"all_reduce": 8}
    # A size that is not known is no 0.
    for of_type, number in (("Unheard", 4), ("Float", None), ("Float", -1), ("Float", 10**400)):
        assert read(*kernels, make_collective(7, "allreduce", number, 4, of_type)) == {}
