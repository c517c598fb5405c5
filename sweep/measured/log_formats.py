"""Lines in which trainers report a step: a row each, with what its number is, and its unit.

From their sources: Megatron-LM (so Megatron-Bridge, Primus, GPT-NeoX), nanotron 0.4, NeMo 1.23 and
2.3, MaxText 0.2.5, DeepSpeed 0.19, litgpt 0.5.13, mlperf-logging 4.1 (`tracked_stats`: NVIDIA's),
Composer 0.32, transformers 5.24 (so TRL and axolotl), LLaMA-Factory 0.9.5, torchtitan 0.3. From
memory of them: Megatron-DeepSpeed, Lightning, nanoGPT, nanochat, llm.c.

Groups of a pattern: `value`, and its `suffix`. `step`: lines that repeat it count once. `total`: of
another bar, if not the first line's. `clock`: in which the value has grown, both since the first
line or one with `start`. Others are columns.
"""

import re
from typing import NamedTuple

from paradl.sweep.measured.rates import OF_PE, SAMPLES, STEPS

NUMBER = r"(?P<value>\d[\d,]*(?:\.\d*)?(?:[eE][+-]?\d+)?)"
FACTORS = {"": 1.0, "K": 1e3, "M": 1e6, "s/it": 1.0}
INVERSE = "it/s"  # the suffix of a rate among seconds
MS = "total_ms"


class LogFormat(NamedTuple):
    """A trainer's line. word: a part of it. column: of the value, ours or MS.

    is_mean: a line is the mean of all steps so far; the last one counts, and has no warm-up.
    """

    name: str
    word: str
    pattern: str
    column: str = "total_s"
    is_mean: bool = False


HF, MLLOG, DS = "Hugging Face Trainer", ("MLPerf", ":::MLLOG"), "DeepSpeed"
ELAPSED, SPEED = "elapsed_time", ("Composer", "throughput/")
END = r"_per_second['\"]? *[:=] *['\"]?"
# Where a log has lines of several, the first of these counts: seconds before rates, which need the
# batch, and steps before means. Rates of steps that are rounded by more than 1 % are left out.
FORMATS = (
    LogFormat("Megatron-LM", "elapsed", rf"elapsed time per iteration \(ms\): *{NUMBER}", MS),
    LogFormat("Megatron-DeepSpeed", "elapsed", rf"elapsed time per iteration \(s\): *{NUMBER}"),
    LogFormat("nanotron", ELAPSED, rf"{ELAPSED}_per_iteration_ms: *{NUMBER}(?P<suffix>[KM]?)", MS),
    LogFormat(
        *("NeMo", "train_step_timing"),
        rf"(?:global_step[=:] *(?P<step>[\d.]+).*?)?train_step_timing in s[=:] *{NUMBER}",
    ),
    LogFormat(
        *("MaxText", "completed step"),
        rf"step: (?P<step>\d+), seconds: {NUMBER}(?:.*\btotal_weights: (?P<step_tokens>\d+))?",
    ),
    LogFormat(DS, "iter time (s)", rf"iter time \(s\): {NUMBER}"),
    LogFormat(
        *("litgpt without accumulation", "iter time:"),
        *(rf"iter (\d+) step \1 .*iter time: {NUMBER} ms \(step\)", MS),
    ),
    LogFormat("nanoGPT", "iter ", rf"^iter \d+: loss [\d.]+, time {NUMBER}ms", MS),
    LogFormat("nanochat", "dt: ", rf"\bstep \d+/\d+ .*\bdt: {NUMBER}ms", MS),
    LogFormat("llm.c", "step ", rf"^step +\d+/\d+ \|.*\| {NUMBER} ms \|", MS),
    LogFormat(*MLLOG, rf'"tracked_stats".*"throughput": *{NUMBER}', SAMPLES),
    LogFormat(
        *MLLOG,
        r'"time_ms": *(?P<clock>\d+).*"(?:block|epoch)_(?:stop|(?P<start>start))".*'
        rf'"samples_count": *{NUMBER}',
        SAMPLES,
    ),
    LogFormat(DS, "SamplesPerSec", rf"\b(?:Curr)?SamplesPerSec={NUMBER}", SAMPLES),
    LogFormat(*SPEED, rf"throughput/batches_per_sec: (?!0\.00[0-4]){NUMBER}", STEPS),
    LogFormat(*SPEED, rf"throughput/samples_per_sec: {NUMBER}", SAMPLES),
    LogFormat("torchtitan", "tps:", rf"(?<!validate )\bstep: *\d+ .*?\btps: *{NUMBER}", OF_PE),
    LogFormat(
        *(HF, "train_steps_per"),
        rf"(?:train_samples{END}(?P<samples_per_second>[\d.]+).*)?"
        rf"train_steps{END}(?!0\.0[0-4]){NUMBER}",
        *(STEPS,),
        is_mean=True,
    ),
    LogFormat(HF, "train_samples_per", rf"train_samples{END}{NUMBER}", SAMPLES, is_mean=True),
    LogFormat(
        *("LLaMA-Factory", ELAPSED),
        *(rf'"current_steps": *{NUMBER}.*"{ELAPSED}": *"(?P<clock>[^"]*)"', STEPS),
        is_mean=True,
    ),
    LogFormat(
        *("Lightning", "Epoch "),
        r"^Epoch \d+: +\d+%\|[^|]*\| *(?P<step>\d+)/(?P<total>\d+) \[[^\]]*?, *"
        rf"{NUMBER}(?P<suffix>s/it|it/s)",
    ),
    LogFormat(
        *(HF, "%|"),  # its bar; others have a description in front
        r"^(?:\[\w+\]:|\d+:)? *\d+%\|[^|]*\| *(?P<step>\d+)/(?P<total>\d+) \[[^\]]*, *"
        rf"(?:\?|{NUMBER})(?P<suffix>s/it|it/s)",
    ),
)
KNOWN = ", ".join(dict.fromkeys(form.name for form in FORMATS))

# Peak memory of a PE, in units of bytes: torchtitan, nanotron, Megatron-LM, DeepSpeed, Composer.
MEMORY = {
    rf"\bmemory: *{NUMBER} *GiB": 2**30,
    rf"\bpeak reserved: *{NUMBER} *MiB": 2**20,
    rf"\bmax reserved: *{NUMBER}": 2**20,
    rf"\bpeak_memory_usage: *{NUMBER}": 1,
    rf"\bmemory/device_reserved \(GiB\)'?: *{NUMBER}": 2**30,
    rf"\bMaxMemAllocated={NUMBER} *GB": 2**30,  # it divides by 1024^3
    rf"\bmemory/peak_reserved_mem: *{NUMBER}": 1e9,
}
# nanotron rounds 1,024 to 1.02K: such a batch is not exact, and has to be given.
BATCH = (
    r"(?:\bglobal[ _](?:train_)?batch[ _]size(?:_to_train_on)?|\btrain_batch_size(?= \.\.)|"
    r"\bTotal train batch size \([^)]*\))[\"']?(?:, \"value\")?[ .:=]*"
    r"(\d[\d,]*)(?:\.0+(?!\d))?(?![\d.]*[\dKMB])"
)
# PEs: Megatron-LM and DeepSpeed, Lightning, MaxText.
PES = (
    r"(?:(?<!parallel )\bworld[ _]size[\"']?[ .:=]+|\bregistered\. Starting with |"
    r"\bNum_devices: *)(\d+)(?![\d.])"
)
# Bytes that lines with a step, with memory, a batch or PEs have.
WORDS = {*(form.word for form in FORMATS), "reserved", "batch size", "batch_size"}
WORDS |= {"world size", "world_size", "Starting with", "Num_devices"}
WANTED = re.compile("|".join(map(re.escape, sorted(WORDS))).encode())
