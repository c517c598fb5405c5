"""Terms of the machine oracle at their limits: a table of docs/machine.md, How terms grow.

python tests/helpers/machine_forms.py    # prints the table
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from paradl.grids.grid import Grid
from paradl.grids.spec import validate_spec
from paradl.kernels.arrays import use_numpy
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.terms import TERMS
from paradl.kernels.oracle.answer import answer_case

# PEs and samples per replica of each column; ABCI has 4 PEs per node, the groups of hybrids.
LIMITS: dict[str, tuple[int, int]] = {
    "one PE": (1, 32),
    "one node": (4, 32),
    "16 PEs": (16, 32),
    "1,024 PEs": (1024, 32),
    "16 PEs, b = 1": (16, 1),
    "16 PEs, b = 4,096": (16, 4096),
}


@dataclass(frozen=True)
class Form:
    """A term in a configuration where one form of it dominates; why: the reason where it is 0."""

    term: str
    strategy: str
    why: str
    model: Any = "resnet50"
    dataset: str = "imagenet"
    system: str = "abci"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The configuration, apart from ResNet-50 and ABCI."""
        system = self.system.removeprefix("abci").removeprefix(":")
        model = "" if self.model == "resnet50" else self.model
        stated = [f"{name}={value}" for name, value in self.parameters.items()]
        return ", ".join(filter(None, (f"`{self.strategy}`", model, system, *stated)))


FORMS = (
    Form("forward_backward", "data", "a PE's own: neither p nor nodes matter"),
    Form("pipeline_bubble", "data+pipeline", "one stage waits for no other"),
    Form("pass_overhead", "data", "weights are read once a pass: the same for any p and b"),
    Form("launch_wait", "data", "few samples: o G_o less the device's time; many: to 0 as b^-3"),
    Form("launch_wait", "data+spatial", "the same: parts of layers are launched as whole ones are"),
    Form("weight_update", "data", "once an iteration: the same for any p and b"),
    Form("split_overhead", "data+filter", "one PE has whole layers; parts of y are put together"),
    Form(
        "gradient_packing",
        "filter",
        "one PE packs nothing; else weights alone count",
        model="vgg16",
    ),
    Form(
        "input_wait",
        "data",
        "0 where hosts are ahead of all else, which grows with p",
        parameters={"input_rate": 1000},
    ),
    Form("gradient_exchange", "data", "one PE has no peers; one node uses no adapter"),
    Form(
        "gradient_exchange",
        "data",
        "the same; computing hides all but the last bucket",
        system="abci:software=ddp",
    ),
    Form(
        "gradient_exchange",
        "filter",
        "one PE has no peers; hosts' slow part has 1 - 1/p of its limit, 3/4 in one node",
        model="vgg16",
    ),
    Form(
        "gradient_exchange",
        "data+spatial",
        "one PE has no peers; in one node no leaders exchange the slow part",
        model="vgg16",
    ),
    Form(
        "layer_collectives",
        "data+filter",
        "one PE has whole layers; a group in a node uses no adapter",
    ),
    Form(
        "halo_exchange", "data+spatial", "one PE has no neighbours; start-ups stay with few samples"
    ),
    Form(
        "split_gather",
        "data+spatial",
        "one PE has all of it; 1 - 1/p2 of the samples, no start-ups",
    ),
    Form("sample_scatter", "data+spatial", "one PE has all samples; the first 256 MiB are free"),
    Form(
        "sample_scatter",
        "data+spatial",
        "the same; a sample alone has 2 GiB; nodes wait for the slowest of them",
        model="cosmoflow",
        dataset="cosmoflow-512",
    ),
    Form(
        "point_to_point",
        "data+pipeline",
        "one stage sends nothing; start-ups stay with few samples",
    ),
    Form(
        "log_files",
        "data+spatial",
        "one PE exchanges nothing; 2 L_c p tau, and p tau more of several replicas",
    ),
    Form("log_files", "data+channel", "gradients alone: p tau of several replicas, 0 of one"),
    Form("straggler_wait", "data", "z(1) = 0: one PE waits for no other"),
    Form(
        "hidden_communication",
        "data",
        "one PE sends nothing to hide; few samples hide little",
        system="abci:software=ddp",
    ),
)


def time_form(form: Form, pe: list[int], batch: list[int], **changed: Any) -> Floats:
    """Compute seconds per iteration [pe, batch] with priors, except for `changed` parameters."""
    labels = {name: getattr(form, name) for name in ("dataset", "system", "strategy")}
    spec = {
        "axes": {"model": [form.model], **labels, "pe": pe, "batch": batch},
        "parameters": {**form.parameters, **changed},
        "calibration": "none",
    }
    answer = _answer(json.dumps(spec))
    seconds = getattr(answer.terms, form.term) / answer.iterations
    return np.broadcast_to(seconds, (len(pe), len(batch)))


@cache  # many forms are terms of the same answer
def _answer(spec: str) -> Answer:
    case = Grid.from_spec(validate_spec(json.loads(spec), "spec")).case((0, 0, 0, 0))
    assert case is not None
    with use_numpy():
        return answer_case(case)


def list_times(form: Form) -> dict[str, float]:
    """Compute milliseconds per iteration at each limit."""
    pes, batches = (sorted({limit[i] for limit in LIMITS.values()}) for i in (0, 1))
    seconds = time_form(form, pes, batches)
    return {
        name: float(1e3 * seconds[pes.index(pe), batches.index(batch)])
        for name, (pe, batch) in LIMITS.items()
    }


def show_time(milliseconds: float) -> str:
    """Format with three digits."""
    return f"{float(f'{milliseconds:.3g}'):,g}"


def list_lines() -> list[str]:
    """Return the lines of the table."""
    heads = ["term", "of", *LIMITS, "limits: where it is 0, and why"]
    rows = [heads, ["---"] * len(heads)]
    for form in FORMS:
        times = map(show_time, list_times(form).values())
        rows.append([f"`{form.term}`", form.place, *times, form.why])
    return ["| " + " | ".join(row) + " |" for row in rows]


if __name__ == "__main__":
    assert {form.term for form in FORMS} == set(TERMS)
    print("\n".join(list_lines()))
