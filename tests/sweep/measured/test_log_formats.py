"""Logs of trainers, in their own formats: seconds of a step, from rates if need be.

Lines of transformers 5.24, pytorch-lightning 2.6 (NeMo 1's bar) and mlperf-logging 4.1 are what
these wrote here; those of DeepSpeed 0.19 and 0.3, NeMo 2.3, MaxText 0.2.5, litgpt 0.5.13, Composer
0.32, LLaMA-Factory 0.9.5 and torchtitan 0.3 are filled into the formats of their sources.
"""

import json
from datetime import timedelta
from statistics import median

import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.measured.runs import read_runs

VALUES = {
    **{"model": "llama3_8b", "dataset": "pile:length=4096", "p": 64, "replicas": 32},
    "strategy": "data+tensor:tensor=2,micro=1",
}
BATCH, TOKENS = 128, 128 * 4096
SECONDS = (9.125, 5.375, 5.5, 5.4375, 5.40625, 5.59375, 5.4)
WARM = median(SECONDS[2:])


def say(line):
    """A log of SECONDS: line is called with the number of a step and its seconds."""
    return "".join(line(n, t) for n, t in enumerate(SECONDS, 1))


def make_bar(n, seconds):
    """Return NeMo 1's bar of a step, drawn twice: first with what the step before it took."""
    before = SECONDS[max(n - 2, 0)]
    metrics = (
        f"\rEpoch 0:  {n}%|█         | {n}/100 [00:05<09:00,  5.43s/it, reduced_train_loss=10.5, "
        "global_step={}, consumed_samples=512.0, train_step_timing in s={:.4f}]"
    )
    return metrics.format(f"{n - 1}.000", before) * (n > 1) + metrics.format(f"{n}.000", seconds)


def make_mllog(n, seconds):
    """Return an interval of ten steps by mllog; another second goes to an evaluation."""
    end = 1_700_000_000_000 + round(1e4 * sum(SECONDS[:n])) + 1000 * n
    start = end - round(1e4 * seconds)
    line = (
        ':::MLLOG {{"namespace": "", "time_ms": {}, "event_type": "INTERVAL_{}", "key": "block_{}",'
        ' "value": null, "metadata": {{"file": "a.py", "lineno": 8, "samples_count": {}}}}}\n'
    )
    samples = 10 * BATCH * n
    first = line.format(start, "START", "start", samples - 10 * BATCH)
    return first + line.format(end, "END", "stop", samples)


STATED = (
    '"event_type": "POINT_IN_TIME", "key": "global_batch_size", "value": 128, "metadata": {}}\n'
)
TRACKED = (
    ':::MLLOG {{"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": '
    '"tracked_stats", "value": {{"throughput": {}}}, "metadata": {{"step": 3}}}}\n'
)
DEEPSPEED = (
    "[2026-03-22 10:00:00,124] [INFO] [timer.py:264:stop] epoch=0/micro_step={n}/global_step={n}, "
    "RunningAvgSamplesPerSec=1.5, CurrSamplesPerSec={rate}, MemAllocated=31.2GB, "
    "MaxMemAllocated=52.8GB\n"
)
LITGPT = "Epoch 1 | iter {} step {} | loss train: 4.1, val: n/a | iter time: {:.2f} ms{}\n"

# By name: a log, and whether its global batch has to be given.
LOGS = {
    "DeepSpeed": (say(lambda n, t: DEEPSPEED.format(n=n, rate=BATCH / t)), True),
    "DeepSpeed 0.3": (
        "[INFO] [config.py:1:print]   train_batch_size ............. 128\n"
        "[INFO] [config.py:1:print]   train_micro_batch_size_per_gpu  1\n"
        + say(lambda n, t: f"[INFO] [timer.py:152:stop] 0/{n}, SamplesPerSec={BATCH / t}\n"),
        False,
    ),
    "DeepSpeed's pipeline": (
        say(lambda n, t: f"steps: {n} loss: 4.1 iter time (s): {t:.6f} samples/sec: 1.000\n"),
        True,
    ),
    "NeMo 1": (say(make_bar) + "\n", True),
    "NeMo 2": (
        say(
            lambda n, t: (
                f"Training epoch 0, iteration {n}/49 | lr: 4.5e-07 | global_batch_size: 128 | "
                f"global_step: {n} | reduced_train_loss: 11 | train_step_timing in s: {t}\n"
            )
        ),
        False,
    ),
    "MaxText": (
        "Config param global_batch_size_to_eval_on: 64\n"
        "Config param global_batch_size_to_train_on: 128\n"
        + say(
            lambda n, t: (
                f"completed step: {n}, seconds: {t}, TFLOP/s/device: 170.1, Tokens/s/device: 1.5, "
                "total_weights: 400001, loss: 10.0, lm_loss: 10.0, perplexity: 9.000\n"
            )
        ),
        False,
    ),
    "MaxText without its configuration": (
        say(lambda n, t: f"completed step: {n}, seconds: {t}, total_weights: {TOKENS}, loss: 1\n"),
        False,
    ),
    "litgpt": (
        "{'train': TrainArgs(save_interval=1000, global_batch_size=128, micro_batch_size=4)}\n"
        + say(lambda n, t: LITGPT.format(n, n, 1e3 * t, " (step) remaining time: 0:00:10")),
        False,
    ),
    "MLPerf": (STATED + say(make_mllog), False),
    "MLPerf's rates": (
        STATED + say(lambda n, t: TRACKED.format(BATCH / t)) + make_mllog(1, 1.0),
        False,
    ),
    "torchtitan": (
        "Trainer is initialized with local batch size 1, global batch size 128, gradient "
        "accumulation steps 4, sequence length 4096, total steps 9 (warmup 2)\n"
        + say(
            lambda n, t: (
                f"step: {n:2}  loss:  8.0  memory: 44.84GiB(47.19%)  tps: {TOKENS / 64 / t}\n"
                f"validate step: {n:2}  loss:  8.0  memory: 44.84GiB(47.19%)  tps: 9,999,999\n"
            )
        ),
        False,
    ),
    "Megatron-DeepSpeed": (
        say(
            lambda n, t: (
                f" iteration {n:8}/  500000 | consumed samples: {n} | consumed tokens: {n} | "
                f"elapsed time per iteration (s): {t} | learning rate: 1.0E-05 | "
                "global batch size:   128 | lm loss: 8.1 | samples per second: 1.9 | TFLOPs: 1 |\n"
            )
        ),
        False,
    ),
    "nanoGPT": (say(lambda n, t: f"iter {n}: loss 5.7, time {1e3 * t}ms, mfu 34.2%\n"), True),
    "nanochat": (
        say(
            lambda n, t: (
                f"step {n:05}/21400 (0.05%) | loss: 8.1 | lrm: 1.00 | dt: {1e3 * t}ms | "
                "tok/sec: 96,712 | mfu: 48.20 | total time: 0.50m\n"
            )
        ),
        True,
    ),
    "llm.c": (
        say(
            lambda n, t: (
                f"step {n:4}/19560 | loss 7.1 (+0.1z)| norm 1.2 (+0.1z)| lr 3e-5 | {1e3 * t} ms | "
                "50.2% bf16 MFU | 96712 tok/s\n"
            )
        ),
        True,
    ),
    "Lightning": (
        say(
            lambda n, t: (
                f"\rEpoch 0:  {n}%|█         | {n}/90 [00:05<09:00, {1 / t}it/s, v_num=0, loss=2.3]"
            )
        )
        + "\n",
        True,
    ),
    "a bar of the Trainer": (
        "Loading checkpoint shards: 100%|██| 4/4 [00:05<00:00,  1.25s/it]\r"
        "  0%|          | 0/90 [00:00<?, ?it/s]\r 50%|█████     | 3/5 [00:01<00:00, 4.00it/s]\r"
        + say(lambda n, t: f" {n}%|█         | {n}/90 [00:05<09:00, {t}s/it]\r" * 2)
        + "\n",
        True,
    ),
}


@pytest.fixture
def folder(tmp_path):
    def write(name, text, mapping=None, **values):
        stated = {"values": VALUES | values, **(mapping or {})}
        (tmp_path / "mapping.yaml").write_text(json.dumps(stated))
        (tmp_path / name).write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize("name", LOGS)
def test_seconds_and_batch_of_a_log(name, folder):
    """The first two steps warm up. A batch that nothing states is asked for."""
    text, needs_batch = LOGS[name]
    skip: dict[str, object] = {"skip": 2}
    if needs_batch:
        with pytest.raises(InputError, match=r"run\.log:.*(batch|samples_per_replica)"):
            read_runs(folder("run.log", text, skip))
        skip["values"] = VALUES | {"global_batch": BATCH}
    (run,) = read_runs(folder("run.log", text, skip))
    assert run.measured.total == pytest.approx(WARM, rel=1e-3)
    assert run.samples_per_replica == 4


def test_memory_of_deepspeed_and_composer(folder):
    """DeepSpeed's GB are 2^30 bytes, Composer's 10^9."""
    (run,) = read_runs(folder("run.log", LOGS["DeepSpeed"][0], global_batch=BATCH))
    assert run.memory == pytest.approx(52.8 * 2**30)
    text = (
        "[batch=3/9]:\n\t Train memory/peak_reserved_mem: 52.8000\n"
        "\t Train throughput/batches_per_sec: 0.2000\n"
        "\t Train throughput/samples_per_sec: 25.9000\n"
        "\t Train throughput/device/batches_per_sec: 0.0031\n"
    )
    (run,) = read_runs(folder("run.log", text, samples_per_replica=4))
    assert (run.measured.total, run.memory) == (5.0, 52.8e9)
    # 1 / 0.0020 may be 490 to 512 s.
    (run,) = read_runs(folder("run.log", text.replace("0.2000", "0.0020"), global_batch=BATCH))
    assert run.measured.total == pytest.approx(128 / 25.9)


TRAINER = (
    "[transformers]   Total train batch size (w. parallel, distributed & accumulation) = 128\n"
    "\r  3%|▎         | 1/30 [00:00<00:06,  4.56it/s]\r    \r{{'loss': '5.473', 'epoch': '0.2'}}\n"
    "\r    \r{{'train_runtime': '5432', 'train_samples_per_second': '23.56', "
    "'train_steps_per_second': '{rate}', 'train_loss': '5.471', 'epoch': '0.6'}}\n"
    "***** train metrics *****\n"
    "  train_runtime            = 0:00:00.76\n"
    "  train_samples_per_second =     23.561\n"
    "  train_steps_per_second   =     {rate}\n"
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.log", TRAINER.format(rate="0.184")),
        # Of transformers 4: numbers; the two rates come to 128.04 samples, of 32 replicas.
        (
            "run.log",
            "{'train_runtime': 5432.1, 'train_samples_per_second': 23.56, "
            "'train_steps_per_second': 0.184, 'train_loss': 1.2, 'epoch': 1.0}\n",
        ),
    ],
)
def test_the_last_line_of_the_trainer_has_no_warm_up(name, text, folder):
    (run,) = read_runs(folder(name, text, {"skip": 5}))
    assert run.measured.total == pytest.approx(1 / 0.184)
    assert run.samples_per_replica == 4


def test_rates_that_come_to_no_batch_or_are_rounded_too_far(folder):
    line = "{{'train_samples_per_second': {}, 'train_steps_per_second': {}}}\n"
    with pytest.raises(InputError, match=r"samples_per_replica is not given"):
        read_runs(folder("run.log", line.format(22.0, 0.184)))
    # 0.018 is 54 to 57 s a step; the other rate is precise, and needs the batch.
    with pytest.raises(InputError, match=r"run.log:1: samples_per_second: .*global_batch"):
        read_runs(folder("run.log", line.format(2.356, 0.018)))
    (run,) = read_runs(folder("run.log", line.format(2.356, 0.018), global_batch=128))
    assert run.measured.total == pytest.approx(128 / 2.356)


@pytest.mark.parametrize("name", ["all_results.json", "train_results.json", "trainer_state.json"])
def test_results_that_the_trainer_saves(name, folder):
    """`train_batch_size` is that of a device."""
    record = {"epoch": 0.6, "train_samples_per_second": 23.56, "train_steps_per_second": 0.184}
    text = json.dumps({"log_history": [record], "train_batch_size": 2}, indent=2)
    (run,) = read_runs(folder(name, text, {"skip": 1}, global_batch=128))
    assert run.measured.total == pytest.approx(1 / 0.184)
    with pytest.raises(InputError, match=name):
        read_runs(folder(name, "{}"))


def test_elapsed_times_of_llama_factory(folder):
    """Whole seconds: from the first line to the last; a run that went on counts anew."""

    def write(n, start):
        elapsed = timedelta(seconds=int(86_300 + 54.2 * (n - start)))
        line = {"current_steps": 10 * n, "total_steps": 900, "elapsed_time": str(elapsed)}
        return json.dumps(line) + "\n"

    text = "".join([*(write(n, 0) for n in range(1, 20)), *(write(n, 9) for n in range(10, 30))])
    (run,) = read_runs(folder("trainer_log.jsonl", text, {"skip": 1}, global_batch=128))
    assert run.measured.total == pytest.approx(5.42, rel=1e-3)


def test_an_iteration_of_several_is_no_step(folder):
    line = LITGPT.format(4, 1, 1000.0, " (step) remaining time: 0:00:10")
    with pytest.raises(InputError, match=r"run.log: .*litgpt without accumulation"):
        read_runs(folder("run.log", line, global_batch=128))


def test_bars_longer_than_a_piece_of_a_line(folder):
    text = "\r".join(f"global_step={n}.0, train_step_timing in s=5.4321" for n in range(9000))
    (run,) = read_runs(folder("run.log", text, global_batch=128))
    assert run.measured.total == 5.4321


RATES = {
    "samples_per_second": BATCH / 5.0,
    "tokens_per_second": TOKENS / 5.0,
    "tokens_per_second_per_pe": TOKENS / 64 / 5.0,
    "steps_per_second": 0.2,
}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    "table",
    [
        "Step,fox - rate,fox - rate__MIN,fox - rate__MAX\n1,{0},{0},{0}\n2,NaN,,\n",
        "run_id,key,value\na,loss,3\na,rate,{0}\n",
        "run_id,status,metrics.rate\na,FINISHED,{0}\n",
    ],
)
def test_rates_in_tables_of_trackers(table, rate, folder):
    text = table.format(RATES[rate])
    mapping = {"columns": {rate: "rate"}}
    (run,) = read_runs(folder("runs.csv", text, mapping, global_batch=BATCH))
    assert run.measured.total == pytest.approx(5.0)
    if rate != "steps_per_second":
        with pytest.raises(InputError, match=rf"runs.csv:\d: {rate}: .*global_batch"):
            read_runs(folder("runs.csv", text, mapping))
    with pytest.raises(InputError, match=rf"runs.csv:\d: {rate}: "):
        read_runs(folder("runs.csv", table.format(0), mapping, global_batch=BATCH))


def test_tokens_of_a_pe_give_seconds_where_the_length_is_not_stated(folder):
    mapping = {"columns": {"tokens_per_second": "rate"}}
    values = {"dataset": "pile", "samples_per_replica": 4}
    with pytest.raises(InputError, match="tokens_per_pe"):
        read_runs(folder("runs.csv", "rate\n1000\n", mapping, **values))
    tokens = {"tokens_per_pe": "8k"}
    (run,) = read_runs(folder("runs.csv", "rate\n1000\n", mapping | tokens, **values))
    assert run.measured.total == pytest.approx(64 * 8192 / 1000)


def test_several_runs_of_one_rate_are_refused(folder):
    table = "Step,fox - rate,owl - rate\n1,5,6\n"
    with pytest.raises(InputError, match="several columns"):
        read_runs(folder("runs.csv", table, {"columns": {"samples_per_second": "rate"}}))


def test_what_lies_beside_runs_is_passed_over(folder):
    text = LOGS["NeMo 2"][0]
    beside = {"README.md": "step: 3", "run.sh": "srun", "config.json": "{}", "a.png": "\0\r%|\n"}
    for name, other in beside.items():
        (folder("run.log", text) / name).write_text(other)
    (run,) = read_runs(folder("run.log", text))
    assert run.source == "run.log"
    # A file that is named is meant; and one has to have steps.
    for mapping in ({"per_file": {"README.md": {"p": 8}}}, {"files": "*[dg]"}):
        with pytest.raises(InputError, match=r"README\.md: .*Megatron-LM, .*LLaMA-Factory"):
            read_runs(folder("run.log", text, mapping))
    with pytest.raises(InputError, match=r"5 files: .*Megatron-LM, .*LLaMA-Factory"):
        read_runs(folder("run.log", "nothing"))
