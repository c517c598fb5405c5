"""Traces of a profiler: by the definition, at any size, and with a bound on memory."""

import gzip
import json
import random
import tracemalloc
from itertools import pairwise

import pytest

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
