"""Folders of runs in the words of other programs: each format, and what is refused.

Lines are written as the programs print them: Megatron-LM's training_log, nanotron's and
torchtitan's loggers, exports of Weights & Biases and MLflow, PyTorch profiler's traces.
"""

import gzip
import json

import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.measured.runs import read_runs

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


@pytest.mark.parametrize("place", ["values", "file"])
def test_a_rate_of_tokens_may_be_that_of_a_file(place, folder):
    values = VALUES.replace("replicas: 8", "samples_per_replica: 4")
    text = "\n".join(TITAN.format(n=n, tps=4096) for n in range(3))

    def read(tokens):
        of_file = f"\nper_file: {{run.log: {{tokens_per_pe: {tokens}}}}}\ntokens_per_pe: 1"
        of_all = values.replace(
            "samples_per_replica: 4", f"samples_per_replica: 4, tokens_per_pe: {tokens}"
        )
        (run,) = read_runs(folder(of_all if place == "values" else values + of_file, run_log=text))
        return run.measured.total

    assert read("8k") == pytest.approx(2.0)
    for wrong in ("-1", "0", "1.5", "many"):
        with pytest.raises(InputError, match=r"mapping.yaml: tokens_per_pe"):
            read(wrong)


@pytest.mark.parametrize(
    "table", ["run_id,key,value\na,t,1\nb,t,2\n", "Step,a - t,b - t\n1,2,3\n", "t\n0,25\n"]
)
def test_tables_of_several_runs_and_with_decimal_commas(table, folder):
    mapping = f"columns: {{total_s: t}}\n{VALUES.replace('replicas', 'samples_per_replica')}"
    with pytest.raises(InputError, match=r"runs\.csv:[123]"):
        read_runs(folder(mapping, runs_csv=table))


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


def test_units_hold_for_columns_with_our_names(folder):
    values = VALUES.replace("replicas: 8", "samples_per_replica: 32")
    table = "total_s,comm_s\n200,50\nnan,40\n"
    (run,) = read_runs(folder(f"{values}\nunits: {{total_s: ms, comm_s: us}}", runs_csv=table))
    assert run.measured.total == pytest.approx(0.2)
    assert run.measured.comm == pytest.approx(50e-6)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("files: /tmp/*.csv", r"mapping\.yaml: files: .*got '/tmp/\*\.csv'; write it like"),
        ("files: ''", r"files: expected a pattern"),
        ("files: '../*'", r"mapping\.yaml: files: "),
        ("units: {total_s: parsecs}", r"mapping\.yaml: units: total_s: "),
        ("files: '**x'", r"expected (a pattern|1 to 1000 files)"),
        ("units: {p: ms}", r"units: p has no unit; total_s"),
        ("per_file: {run.csv: {p: 16}}", r"per_file: unknown file 'run.csv'; did you mean 'runs."),
    ],
)
def test_lines_of_a_mapping_that_would_do_nothing(line, message, folder):
    values = VALUES.replace("replicas: 8", "samples_per_replica: 32")
    with pytest.raises(InputError, match=message):
        read_runs(folder(f"{values}\n{line}", runs_csv="total_s\n0.2\n"))


@pytest.mark.parametrize("bad", ["-1", "inf"])
def test_a_bad_step_has_its_line(bad, folder):
    values = VALUES.replace("replicas: 8", "samples_per_replica: 32")
    table = f"total_s\n0.2\n0.3\n{bad}\n0.2\n"
    with pytest.raises(InputError, match=r"runs\.csv:4: total_s: "):
        read_runs(folder(values, runs_csv=table))
    # A step that is skipped may be anything.
    (run,) = read_runs(folder(f"{values}\nskip: 3", runs_csv=table))
    assert run.measured.total == 0.2


def test_a_value_with_a_unit_needs_none(folder):
    values = VALUES.replace("replicas: 8", "samples_per_replica: 32")
    (run,) = read_runs(folder(f"{values}\nunits: {{total_s: ms}}", runs_csv="total_s\n0.2 s\n"))
    assert run.measured.total == pytest.approx(0.2)


def test_hidden_files_are_left_out(folder):
    values = VALUES.replace("replicas: 8", "samples_per_replica: 32")
    path = folder(values, runs_csv="total_s\n0.2\n", _DS_Store="\0")
    assert (path / ".DS.Store").is_file()
    assert len(read_runs(path)) == 1


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


@pytest.mark.parametrize("lasts", ["9" * 400, "NaN", "1e999"])
def test_a_span_of_no_time_is_left_out(lasts, folder):
    span = '{"ph": "X", "name": "ProfilerStep#%d", "ts": 0, "dur": %s, "cat": "user_annotation"}'
    values = VALUES.replace("replicas: 8", "samples_per_replica: 32")
    (run,) = read_runs(folder(values, step_json=f"[{span % (1, lasts)}, {span % (2, 100)}]"))
    assert run.measured.total == pytest.approx(1e-4)


def test_ranks_that_all_report_count_once(folder):
    """torchrun interleaves eight ranks; a bar is drawn over; the first two steps warm up."""
    lines = [
        TITAN.replace("[rank0]", f"[rank{rank}]").format(n=n, tps=1024 if n < 2 else 4096 + rank)
        for n in range(5)
        for rank in (3, 0, 1)
    ]
    text = "".join(f"\r 10%|#   | {line}\n" for line in lines)
    values = VALUES.replace("replicas: 8", "samples_per_replica: 4")
    (run,) = read_runs(folder(f"{values}\nskip: 2\ntokens_per_pe: 4099", run_log=text))
    assert run.measured.total == pytest.approx(1.0)


def test_a_megatron_run_that_ramped_up_and_was_restarted(folder):
    """Memory is the peak that ranks state; a loss of nan changes nothing; 5.0E+02 is a number."""
    start = "building GPT model ...\n (min, max) time across ranks (ms):\n"
    memory = (
        "[Rank {}] (after {} iterations) memory (MB) | allocated: 9000.0 | max allocated: 20000.5 |"
        " reserved: 30000.0 | max reserved: {}\n"
    )
    ramp = log(MEGATRON.replace("batch size:   256", "batch size:    64"), (900.0, 130.0))
    first = log(MEGATRON, ("900.0", "500.0", "5.0E+02")).replace("7.1E+00", "nan")
    again = log(MEGATRON, ("9000.0", "500.0", "510.0", "490.0"))
    text = f"{start}{ramp}\n{memory.format(0, 2, 40960.0)}{first}\n{start}{again}\n"
    (run,) = read_runs(folder(f"{VALUES}\nskip: 2", run_log=text))
    assert run.samples_per_replica == 32
    assert run.measured.total == pytest.approx(0.5)
    assert run.memory == 40960 * 2**20


def test_rounded_batches_of_nanotron_are_not_taken(folder):
    text = log(NANOTRON, ("1.2K",)).replace("global_batch_size: 256", "global_batch_size: 1.02K")
    with pytest.raises(InputError, match="samples_per_replica"):
        read_runs(folder(VALUES, run_log=text))
    (run,) = read_runs(folder(VALUES.replace("p: 8", "p: 8, global_batch: 1024"), run_log=text))
    assert (run.measured.total, run.samples_per_replica) == (1.2, 128)


def test_exports_of_trackers(folder):
    """MLflow's table of runs, and the chart of Weights & Biases with its bounds and gaps."""
    values = "values: {model: resnet50, dataset: imagenet, strategy: data}"
    columns = "columns: {total_s: step_time, p: world_size, samples_per_replica: batch}"
    runs = (
        "run_id,status,metrics.loss,metrics.step_time,params.world_size,params.batch\n"
        "a,FINISHED,7,0.25,8,32\nb,FINISHED,7,0.27,16,32\n"
    )
    small, large = read_runs(folder(f"{columns}\n{values}", runs_csv=runs))
    assert (small.p, small.measured.total, large.p) == (8, 0.25, 16)
    chart = (
        '"Step","fast-fox-7 - step_time","fast-fox-7 - step_time__MIN","fast-fox-7 - '
        'step_time__MAX"\n"0","0.25","0.25","0.25"\n"1","NaN","",""\n"2","0.27","0.27","0.27"\n'
    )
    mapping = (
        f"columns: {{total_s: step_time}}\n{VALUES.replace('replicas', 'samples_per_replica')}"
    )
    (run,) = read_runs(folder(mapping, runs_csv=chart))
    assert run.measured.total == pytest.approx(0.26)


def test_a_packed_trace_of_steps_on_both_sides(folder):
    """tensorboard_trace_handler packs traces; steps stand once more on the GPU's side."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#5", "ts": 1e9, "dur": 2e5},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#5", "ts": 1e9, "dur": 9e5},
        {"ph": "X", "cat": "kernel", "name": "ampere_gemm", "ts": 1e9, "dur": 1.2e5, "args": {}},
        {
            "ph": "X",
            "cat": "kernel",
            "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long)",
            "ts": 1e9 + 1e5,
            "dur": 5e4,
        },
        {"ph": "i", "s": "t", "name": "[memory]", "ts": 1e9},
    ]
    path = folder(VALUES.replace("replicas", "samples_per_replica"))
    packed = gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
    (path / "host_7.1.pt.trace.json.gz").write_bytes(packed)
    (run,) = read_runs(path)
    assert (run.measured.total, run.measured.comm) == pytest.approx((0.2, 0.03))
    (path / "host_7.1.pt.trace.json.gz").write_bytes(packed[:50])
    with pytest.raises(InputError, match="gzip"):
        read_runs(path)


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
    "all steps are skipped": (f"{VALUES}\nskip: 9", log(MEGATRON, (250.0,)), "of 'skip'"),
    "no replicas": (VALUES.replace(", replicas: 8", ""), log(MEGATRON, (250.0,)), "replicas"),
    "replicas that do not divide": (
        VALUES.replace("replicas: 8", "replicas: 7"),
        log(MEGATRON, (250.0,)),
        "divisible",
    ),
    "batches that disagree": (
        VALUES.replace("replicas: 8", "replicas: 8, samples_per_replica: 16"),
        log(MEGATRON, (250.0,)),
        "samples_per_replica",
    ),
    "no model": (VALUES.replace("model: resnet50, ", ""), log(MEGATRON, (250.0,)), "model"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said(name, folder):
    mapping, text, reason = REFUSED[name]
    with pytest.raises(InputError, match=reason):
        read_runs(folder(mapping, run_log=text))


LAUNCHED: dict[str, str | int] = {
    **{"model": "resnet50", "dataset": "imagenet", "strategy": "data", "p": 8},
    **{"replicas": 8, "samples_per_replica": 32},
}
WORLDS = (
    "using world size: {}, data-parallel size: 8",
    "world_size ......... {}",
    "Num_devices: {}",
)


@pytest.mark.parametrize("world", WORLDS)
def test_a_log_is_not_of_another_script(world, tmp_path):
    """Batch and PEs agree, in one step at least: a batch may ramp up."""
    path, step = tmp_path / "run.log", log(MEGATRON, (252.0,))
    ramp = log(MEGATRON.replace("  256", "   64"), (130.0,))
    path.write_text(f"{world.format(8)}\n{ramp}\n{step}\n")
    for place in (path, tmp_path):
        (run,) = read_runs(place, LAUNCHED, "start.sh")
        assert (run.p, run.samples_per_replica, run.measured.total) == (8, 32, 0.252)
    cases = ((f"{world.format(16)}\n{step}", "p: .*16.*start.sh.*8"), (ramp, "64.*start.sh.*32"))
    for text, reason in cases:
        path.write_text(text)
        with pytest.raises(InputError, match=f"run.log:[12]: .*{reason}"):
            read_runs(path, LAUNCHED, "start.sh")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": 1}', "no"])
def test_a_hostile_trace(text, folder):
    with pytest.raises(InputError):
        read_runs(folder(VALUES, step_json=text))


def test_a_folder_without_a_mapping(tmp_path):
    with pytest.raises(InputError, match=r"mapping\.yaml"):
        read_runs(tmp_path)


def test_compare_reads_a_folder(folder, cli):
    path = folder(VALUES, run_log=log(MEGATRON, (252.0,)))
    code, out, err = cli("compare", path, "--system", "dgx-a100", "--format", "json")
    assert code == 0, err
    (row,) = json.loads(out)["rows"]
    assert row["measured_total"] == pytest.approx(0.252)
