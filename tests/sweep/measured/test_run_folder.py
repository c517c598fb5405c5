"""Folders of runs in the words of other programs: each format, and what is refused.

Lines are written as the programs print them: Megatron-LM's training_log, nanotron's and
torchtitan's loggers, exports of Weights & Biases and MLflow, PyTorch profiler's traces.
"""

import json

import pytest

from grids.reading.errors import InputError
from sweep.measured.runs import read_runs

VALUES = "values: {model: resnet50, dataset: imagenet, strategy: data, p: 8, replicas: 8}"
MEGATRON = (
    " [2026-01-02 03:04:05] iteration {n:8d}/     500 | consumed samples: {n:12d} | elapsed time "
    "per iteration (ms): {ms} | throughput per GPU (TFLOP/s/GPU): 140.2 | learning rate: 1.0E-04 | "
    "global batch size:   256 | lm loss: 7.1E+00 |"
)
NANOTRON = (
    "01/02/2026 03:04:05 [INFO|DP=0]: iteration: {n} / 100 | consumed_tokens: 2.62M | "
    "elapsed_time_per_iteration_ms: {ms} | tokens_per_sec: 1.04M | global_batch_size: 256 | x"
)
TITAN = (
    "[rank0]:2026-01-02 03:04:05 - root - INFO - \x1b[31mstep: {n:2d}  \x1b[32mloss:  8.01  "
    "\x1b[33mmemory: 20.31GiB(25.68%)  \x1b[34mtps: {tps:,}  \x1b[36mtflops: 9  mfu: 30.1%"
)


@pytest.fixture
def folder(tmp_path):
    def write(mapping, **files):
        (tmp_path / "mapping.yaml").write_text(mapping)
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        return tmp_path

    return write


def log(line, figures, **more):
    return "\n".join(line.format(n=n, **{**more, "ms": ms}) for n, ms in enumerate(figures, 1))


@pytest.mark.parametrize("line", [MEGATRON, NANOTRON])
def test_lines_of_a_trainer(line, folder):
    """The first step warms up; of the others the median."""
    text = "starting\n" + log(line, (900.0, 252.0, 250.0, 254.0))
    (run,) = read_runs(folder(f"{VALUES}\nskip: 1", run_log=text))
    assert (run.p, run.samples_per_replica, run.source) == (8, 32, "run.log")
    assert run.measured.total == pytest.approx(0.252)
    assert run.where.endswith("run.log:2")


def test_a_rate_of_tokens_takes_their_number(folder):
    values = VALUES.replace("replicas: 8", "samples_per_replica: 4")
    text = "\n".join(TITAN.format(n=n, tps=4096) for n in range(3))
    (run,) = read_runs(folder(f"{values}\ntokens_per_pe: 8192", run_log=text))
    assert run.measured.total == pytest.approx(2.0)
    assert run.memory == pytest.approx(20.31 * 2**30)
    with pytest.raises(InputError, match=r"run.log:1: .*tokens_per_pe"):
        read_runs(folder(values, run_log=text))


def test_a_table_with_columns_of_its_own(folder):
    mapping = (
        "columns: {p: world_size, total_s: step_time, samples_per_replica: batch}\n"
        "units: {total_s: ms}\nvalues: {model: resnet50, dataset: imagenet, strategy: data}"
    )
    table = (
        "Step,world_size,batch,run-1 - step_time\n1,8,32,200\n2,8,32,220\n3,8,32,210\n1,16,32,230\n"
    )
    small, large = read_runs(folder(mapping, runs_csv=table))
    assert (small.p, large.p) == (8, 16)
    assert small.measured.total == pytest.approx(0.21)
    assert large.measured.total == pytest.approx(0.23)


def test_metrics_of_mlflow(folder):
    values = VALUES.replace("replicas: 8", "samples_per_replica: 32")
    table = "run_id,key,value,step\na,loss,7,1\na,step_time,0.25,1\na,step_time,0.27,2\n"
    (run,) = read_runs(folder(f"{values}\ncolumns: {{total_s: step_time}}", runs_csv=table))
    assert run.measured.total == pytest.approx(0.26)


def test_a_trace_has_exposed_communication(folder):
    def event(name, start, lasts, kind="kernel"):
        return {"ph": "X", "name": name, "ts": start, "dur": lasts, "cat": kind}

    step = event("ProfilerStep#1", 0, 100_000, "user_annotation")
    # 60 ms of compute; 40 ms of an all-reduce, of which 30 are hidden.
    kernels = [event("gemm", 0, 60_000), event("ncclDevKernel_AllReduce", 30_000, 40_000)]
    trace = json.dumps({"traceEvents": [step, *kernels, {"ph": "M"}]})
    values = VALUES.replace("replicas: 8", "samples_per_replica: 32")
    (run,) = read_runs(folder(values, step_json=trace))
    assert run.measured.total == pytest.approx(0.1)
    assert run.measured.comm == pytest.approx(0.01)
    assert run.measured.comp == pytest.approx(0.09)


def test_values_of_one_file(folder):
    mapping = f"{VALUES}\nper_file: {{two.log: {{p: 16, replicas: 16}}}}"
    text = log(MEGATRON, (250.0,))
    first, second = read_runs(folder(mapping, one_log=text, two_log=text))
    assert (first.p, second.p) == (8, 16)
    assert (first.samples_per_replica, second.samples_per_replica) == (32, 16)


REFUSED = {
    "an unknown column": ("columns: {q: world_size}", "x", "q"),
    "an unknown key": (f"{VALUES}\nskipped: 1", "x", "skipped"),
    "no steps": (VALUES, "nothing", "steps"),
    "all steps are skipped": (f"{VALUES}\nskip: 9", log(MEGATRON, (250.0,)), "skipped"),
    "no replicas": (VALUES.replace(", replicas: 8", ""), log(MEGATRON, (250.0,)), "replicas"),
    "replicas that do not divide": (
        VALUES.replace("replicas: 8", "replicas: 7"),
        log(MEGATRON, (250.0,)),
        "divisible",
    ),
    "no model": (VALUES.replace("model: resnet50, ", ""), log(MEGATRON, (250.0,)), "model"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said(name, folder):
    mapping, text, reason = REFUSED[name]
    with pytest.raises(InputError, match=reason):
        read_runs(folder(mapping, run_log=text))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": 1}', "no"])
def test_a_hostile_trace(text, folder):
    with pytest.raises(InputError):
        read_runs(folder(VALUES, step_json=text))


def test_a_folder_without_a_mapping(tmp_path):
    with pytest.raises(InputError, match=r"mapping\.yaml"):
        read_runs(tmp_path)


def test_compare_reads_a_folder(folder, paradl):
    path = folder(VALUES, run_log=log(MEGATRON, (252.0,)))
    code, out, err = paradl("compare", path, "--system", "dgx-a100", "--format", "json")
    assert code == 0, err
    (row,) = json.loads(out)["rows"]
    assert row["measured_total"] == pytest.approx(0.252)
