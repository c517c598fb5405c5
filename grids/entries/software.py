"""Software: how a framework trains; a setting of a system, like its precision.

A row lists what is known about the parameters that depend on it, whose priors are for PyTorch's
DistributedDataParallel (Li et al., VLDB 2020, arXiv 2006.15704), and about transformers by layout
(`python -m benchmarks layouts`).

To add one: its name in `SoftwareName` and a row of `SOFTWARE`; the setting of systems follows. The
layouts that it runs: `kernels.search.stacks`, with words in `sweep.launching.run`.
Test: tests/test_machine_network.py.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from paradl.grids.entries.entry import Record, expect_one_of
from paradl.grids.entries.reserves import RESERVES, Reserve
from paradl.grids.reading.errors import InputError
from paradl.kernels.machine.rates import Messages, SoftwareTraits
from paradl.kernels.work.transformer import BLOCK_BY_BLOCK, Unsharded

SoftwareName = Literal[
    "plain", "towers", "ddp", "megatron", "megatron-2021", "fsdp", "deepspeed", "jax"
]
Loss = Literal["whole", "plain", "chunked", "fused"]


@dataclass(frozen=True)
class LayoutFacts(SoftwareTraits):
    """How software trains transformers by layout.

    stack: a row of `kernels.search.stacks`, whose rules say which layouts it runs; None: all. loss:
    what it keeps of logits, unless stated. unsharded: what its ZeRO holds whole at a time. reserve:
    how much more memory it takes than formulas count.
    """

    stack: str | None = None
    loss: Loss = "whole"
    unsharded: Unsharded = BLOCK_BY_BLOCK
    reserve: Reserve = RESERVES["unknown"]


def _read_switch(value: object) -> object:
    if isinstance(value, bool):
        return value
    if value not in ("on", "off"):
        raise InputError.unknown("switch", value, ("on", "off"))
    return value == "on"


OnOff = Annotated[bool, BeforeValidator(_read_switch, json_schema_input_type=bool | str)]


def _switch(meaning: str) -> Any:
    return Field(default=None, description=meaning)


class Switches(Record):
    """What software does otherwise than its row of `SOFTWARE` says; None: as it says."""

    overlap_gradients: OnOff | None = _switch("Passes run beside the exchange of gradients.")
    overlap_weights: OnOff | None = _switch("Passes run beside ZeRO's gathers of weights.")
    overlap_tensor: OnOff | None = _switch("Products run beside sequence parallelism's exchanges.")
    overlap_experts: OnOff | None = _switch("Micro-batches run beside others' exchanges of tokens.")
    messages: Messages | None = _switch("In which gradients and weights leave.")
    native_attention: OnOff | None = _switch("Fused attention has instructions newer than A100's.")
    sends_once: OnOff | None = _switch("A token crosses once to a node of several of its experts.")
    grouped_experts: OnOff | None = _switch("One grouped product serves all experts of a PE.")
    stops_at_blocks: OnOff | None = _switch("Hosts and devices wait for each other at every block.")


def list_switched(switches: Switches | None) -> dict[str, Any]:
    """Return what is switched, by name."""
    return switches.model_dump(exclude_none=True) if switches else {}


def write_setting(value: str | bool) -> str:
    """Write a setting as names of systems do."""
    return ("off", "on")[value] if isinstance(value, bool) else value


def write_settings(settings: Mapping[str, str | bool]) -> str:
    """Write settings as names of systems do: `software=megatron,overlap_tensor=off`."""
    return ",".join(f"{key}={write_setting(value)}" for key, value in settings.items())


def write_trained(
    machine: str, precision: str, software: SoftwareName, switches: Switches | None
) -> str:
    """Write what a calibration belongs to, as the name of a system."""
    settings = {"precision": precision, "software": software, **list_switched(switches)}
    return f"{machine}:{write_settings(settings)}"


@dataclass(frozen=True)
class SoftwareFacts:
    """Software that trains.

    parameters: values that replace the medians of priors. settled: those among them that are
    certain.
    """

    meaning: str
    parameters: Mapping[str, float]
    settled: tuple[str, ...] = ()
    layouts: LayoutFacts = field(default_factory=LayoutFacts)

    def switch(self, switches: Switches | None) -> "SoftwareFacts":
        """Return the same software, with what is switched."""
        changed = list_switched(switches)
        return replace(self, layouts=replace(self.layouts, **changed)) if changed else self


# Gradients in buckets, while the backward pass runs.
_BUCKETS: Mapping[str, float] = {"log_open": 0.0}
# Share of a block whose weights are gathered matrix by matrix: 4 h^2 of GPT's 12 h^2.
MATRIX = 1 / 3
_NO_PAUSE: Mapping[str, float] = {**_BUCKETS, "host_pause": 0.0}

SOFTWARE: dict[SoftwareName, SoftwareFacts] = {
    "plain": SoftwareFacts(
        "all gradients in one message after the backward pass (ChainerMN, as in ParaDL's runs)",
        {
            "bucket": math.inf,
            "overlap": 0.0,
            "flow": 0.3,  # one and a half adapters
            "winograd": 1.0,  # rarely possible in Chainer's workspace of 8 MB
            "layer_overhead": 3e-4,  # each layer is launched from Python (Chainer)
            "host_pause": 0.0,
        },
        settled=("bucket", "overlap", "host_pause"),
        layouts=LayoutFacts(
            overlap_gradients=False, overlap_weights=False, messages="one", loss="plain"
        ),
    ),
    "towers": SoftwareFacts(
        "gradients copied between GPUs after the backward pass (TensorFlow 1's replicated towers)",
        {**_NO_PAUSE, "overlap": 0.0},
        settled=(*_NO_PAUSE, "overlap"),
        layouts=LayoutFacts(overlap_gradients=False, overlap_weights=False),
    ),
    "ddp": SoftwareFacts(
        "gradients in buckets, during the backward pass (PyTorch DDP, Horovod, MXNet)",
        _NO_PAUSE,
        settled=(*_NO_PAUSE,),
    ),
    "megatron": SoftwareFacts(
        "as ddp; transformers by Megatron-LM of 2026, overlaps switched on, with cuDNN's attention",
        _BUCKETS,
        settled=("log_open",),
        layouts=LayoutFacts(
            overlap_tensor=True,
            overlap_experts=True,
            messages="buckets",
            sends_once=True,
            stack="megatron",
            reserve=RESERVES["megatron"],
        ),
    ),
    "megatron-2021": SoftwareFacts(
        "one message of gradients; transformers by Megatron-LM of 2021 and 2022, without overlaps",
        {**_BUCKETS, "bucket": math.inf},
        settled=("log_open", "bucket"),
        layouts=LayoutFacts(
            overlap_gradients=False,
            overlap_weights=False,
            messages="one",
            stack="megatron-2021",
            reserve=RESERVES["megatron"],
        ),
    ),
    "fsdp": SoftwareFacts(
        "as ddp; transformers by PyTorch's FSDP of 2024, with flash attention of A100's time",
        _BUCKETS,
        settled=("log_open",),
        layouts=LayoutFacts(
            native_attention=False,
            stack="torchtitan",
            loss="plain",
            # With stages, torchtitan 0.2 leaves weights gathered (parallelize.py), and reduces
            # gradients after the last micro-batch.
            unsharded=Unsharded(with_stages=True),
            reserve=RESERVES["fsdp"],
        ),
    ),
    "deepspeed": SoftwareFacts(
        "as ddp; transformers by DeepSpeed's ZeRO of 2022, whose exchanges follow the passes",
        _BUCKETS,
        settled=("log_open",),
        layouts=LayoutFacts(
            overlap_gradients=False,
            overlap_weights=False,
            messages="tensors",
            native_attention=False,
            grouped_experts=False,
            # Assumption: checkpoints read the device's state of random numbers.
            stops_at_blocks=True,
            stack="deepspeed",
            loss="plain",
            # DeepSpeed 0.19, defaults of `stage3_max_live_parameters`, `reduce_bucket_size`.
            unsharded=Unsharded(MATRIX, weights=1e9, gradients=5e8),
            reserve=RESERVES["deepspeed"],
        ),
    ),
    "jax": SoftwareFacts(
        "as ddp; transformers by JAX (XLA) of 2024, an iteration as one program",
        _NO_PAUSE,
        settled=(*_NO_PAUSE,),
        layouts=LayoutFacts(
            overlap_tensor=True, native_attention=False, unsharded=Unsharded(MATRIX)
        ),
    ),
}


AnySoftware = Annotated[SoftwareName, expect_one_of("software", tuple(SOFTWARE))]
