"""The machine oracle's kernels agree with the independent scalar reference.

Random layers, machines, precisions, strategies and settings. Every number is computed twice; the
discrete placement of layers is the engine's (tests/grids/inputs/test_placement.py).
"""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import reference_products as by_hand
from budgets import limit_examples
from cases import graphs, placed_groups, workloads
from hypothesis import given
from hypothesis import strategies as st
from product_cases import RANGES
from product_questions import make_row
from reference_parts import Machine, Run, profile_slowdown, samples_of_a_pass
from reference_products_parts import ask_alone
from sparse_tables import WORDS, make_model

from paradl.grids.entries.machine_parameters import BLOCK_ROWS
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.precision import NARROW, PRECISIONS
from paradl.grids.entries.software import SOFTWARE
from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.entries.systems import TensorPeaks
from paradl.grids.grid import Grid
from paradl.grids.inputs.case import build_case, divide_rows
from paradl.grids.inputs.machine import sends_whole_gradients
from paradl.grids.inputs.values import Settings
from paradl.grids.inputs.workload import Workload
from paradl.grids.models.architecture import Profile
from paradl.grids.spec import validate_spec
from paradl.kernels.machine.software import Software
from paradl.kernels.names.flags import Limit
from paradl.kernels.names.terms import TERMS
from paradl.kernels.options import Algorithm, Options
from paradl.kernels.oracle.answer import answer_case
from paradl.sweep.answers.numbers import number

TOLERANCE = 1e-9

STRATEGIES = {
    "none": ("serial", "data"),
    "zero": ("data:zero=1", "data:zero=2", "data:zero=3"),
    "zero inside": (
        *("data+spatial:zero=1", "data+filter:zero=2", "data+channel:zero=3"),
        *("data+pipeline:zero=1", "data+pipeline:zero=3,schedule=1f1b"),
    ),
    "spatial": ("spatial", "data+spatial", "spatial:split=all"),
    "pipeline": ("pipeline", "data+pipeline", "pipeline:schedule=1f1b"),
    "filter": ("filter", "data+filter", "filter:split=all"),
    "channel": ("channel", "data+channel"),
    "placement": ("placement", "data+placement", "data+placement:segments=4"),
}
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"recompute": "full", "optimizer": "adam"},
    {"algorithm": "tree", "iterations": "ceil", "optimizer": "none"},
    {"algorithm": "ring"},
    {"algorithm": "two-level"},
)
KINDS_OF_PEAK = {
    "conv2d": "efficiency_conv2d",
    "conv3d": "efficiency_conv3d",
    "matmul": "efficiency_matmul",
}

parameters = st.fixed_dictionaries(
    {},
    optional=RANGES
    | {
        "efficiency": st.floats(0.05, 1),
        "layer_overhead": st.floats(0, 1e-3),
        "segments": st.integers(1, 9).map(float),
        "group": st.sampled_from((1.0, 2.0, 3.0, 4.0)),
        "bucket": st.floats(1, 1e9),
        "overlap": st.floats(0, 1),
    },
)


@st.composite
def machine_workloads(draw: st.DrawFn) -> Workload:
    """As the paper's, in any precision, measured with some batch."""
    workload = draw(workloads())
    peak = draw(st.floats(1e10, 1e15))
    pe = workload.system.pe.model_copy(
        update={"tensor_peaks": TensorPeaks(tf32=peak, amp=2 * peak, bf16=peak)}
    )
    precision = draw(st.sampled_from([name for name in PRECISIONS if name not in NARROW]))
    levels = tuple(
        level.model_copy(update={"oversubscription": draw(st.sampled_from((1.0, 2.0, 3.5)))})
        for level in workload.system.levels
    )
    node = {
        "switch_latency": draw(st.none() | st.floats(1e-7, 1e-3)),
        "shared": draw(st.none() | st.floats(1e8, 1e12)),
    }
    levels = (levels[0].model_copy(update=node), *levels[1:])
    software = draw(st.sampled_from(tuple(SOFTWARE)))
    system = workload.system.model_copy(
        update={"pe": pe, "precision": precision, "levels": levels, "software": software}
    )
    profile = Profile(
        device="any", shape=(1,), seconds=1.0, batch=draw(st.integers(1, 64)), precision=precision
    )
    return replace(workload, system=system, profile=profile)


@pytest.mark.parametrize("inside", STRATEGIES)
@limit_examples(12)
@given(data=st.data())
def test_every_number_agrees_with_the_scalar_reference(inside: str, data: st.DataObject) -> None:
    workload = data.draw(machine_workloads())
    strategy = parse_strategy(data.draw(st.sampled_from(STRATEGIES[inside])))
    chosen, fixed = data.draw(st.sampled_from(OPTIONS)), data.draw(parameters)
    if inside == "placement":  # which runs no forward pass again
        table = data.draw(graphs(workload.table))
        workload = replace(workload, table=table, placed=data.draw(placed_groups(len(table))))
        chosen = {**chosen, "recompute": "none"}
        fixed["group"] = data.draw(st.sampled_from((2.0, 3.0)))
    chosen = {"algorithm": "auto", **chosen}
    options = Options(
        oracle="machine",
        waits_for_input=True,
        **chosen,
    )
    strong = data.draw(st.booleans())
    settings = Settings(fixed, "strong" if strong else "weak", options, "machine")
    counts = (2, 3, 6, 12) if inside == "placement" else (1, 2, 3, 4, 12, 16, 48)
    p, batch = data.draw(st.sampled_from(counts)), data.draw(st.integers(1, 99))
    axes = {"pe": np.array([p], float), "batch": np.array([batch], float)}
    answer = answer_case(build_case(workload, strategy, axes, settings))
    if np.isnan(answer.compute).all():  # no such configuration
        return
    rows, machine = make_rows(workload, strategy, settings, axes), make_machine(workload, settings)
    machine = slow_down(rows, machine, workload)
    asked = ask_alone(rows, make_run(workload, strategy, settings, axes, answer))
    expected = by_hand.epoch(rows, machine, asked)
    expected |= {"hidden_communication": by_hand.hidden_time(rows, machine, asked)}
    for name in TERMS:
        value = number(getattr(answer.terms, name))
        np.testing.assert_allclose(value, expected.get(name, 0.0), TOLERANCE, 1e-300, err_msg=name)
    memory = by_hand.memory(rows, machine, asked)["total"]
    np.testing.assert_allclose(number(answer.memory), memory, TOLERANCE)
    too_small = bool(int(number(answer.limit)) & Limit.MACHINE_TOO_SMALL)
    divides = not int(number(answer.limit)) & Limit.GROUP_DOES_NOT_DIVIDE
    assert not divides or too_small == (asked.p > machine.size)


def make_rows(workload: Workload, strategy: Strategy, settings: Settings, axes: Any) -> list[Any]:
    """The table's rows as the reference takes them, divided as the placement has it."""
    table = workload.table
    placement, _ = divide_rows(workload, strategy, axes, settings).groups.place()
    split = np.broadcast_to(np.asarray(placement.split).reshape(len(table), -1)[:, 0], len(table))
    return [
        make_row(
            table,
            n,
            crossing=table.crossing[n],
            divided=bool(split[n]),
            inputs=tuple(source for source in table.inputs[n] if source >= 0),
            steps=int(table.steps[n]),
            reads=table.reads[n],
            looked_up=table.looked_up[n],
            drawn=table.drawn[n],
        )
        for n in range(len(table))
    ]


def make_machine(workload: Workload, settings: Settings) -> Machine:
    """The system and its priors as the reference takes them."""
    system, fixed = workload.system, settings.parameters
    precision = PRECISIONS[system.precision]

    def value(name: str) -> float:
        prior, known = PARAMETERS[name].prior, SOFTWARE[system.software].parameters
        assert prior is not None
        return fixed.get(name, known.get(name, prior.median[system.precision]))

    # No layer of these networks has them.
    of_blocks = {"offload_rate", *(row.name for row in BLOCK_ROWS)}
    names = [field.name for field in fields(Software) if field.name not in of_blocks]
    of_software: Any = {name: value(name) for name in names}
    return Machine(
        peak=system.peak,
        memory_bandwidth=system.pe.memory_bandwidth,
        memory_capacity=system.pe.memory_capacity,
        pes_per_node=system.pes_per_node,
        levels=[
            (level.pes, level.latency, level.bandwidth, level.oversubscription)
            for level in system.levels
        ],
        a=precision.item,
        g=precision.gradient,
        weight_bytes=precision.weight,
        efficiency=fixed.get("efficiency", 1.0),
        efficiencies={kind: value(name) for kind, name in KINDS_OF_PEAK.items()},
        half_channels=value("half_channels"),
        tile_filters=value("tile_filters"),
        kernel_overlap=value("kernel_overlap"),
        window_fetch=value("window_fetch"),
        layout_passes=value("layout_passes"),
        winograd=value("winograd"),
        elementwise_passes=value("elementwise_passes"),
        reserved=value("reserved"),
        input_rate=fixed.get("input_rate", np.inf),
        links_per_node=system.links_per_node,
        switch_latency=system.levels[0].switch_latency,
        shared=system.levels[0].shared or np.inf,
        staging=(system.staging.latency, system.staging.bandwidth) if system.staging else None,
        phi_halo=fixed.get("phi_halo", 1.0),
        phi_gather=fixed.get("phi_gather", 1.0),
        **of_software,
        size=system.most_pes,
    )


def name_algorithm(algorithm: Algorithm) -> Any:
    assert algorithm != "best"  # Table III's
    return algorithm


def slow_down(rows: list[Any], machine: Machine, workload: Workload) -> Machine:
    """The machine as its profile has it: what a user swept leaves the slowdown as it was."""
    if workload.seconds is None:
        return machine
    nominal = make_machine(workload, Settings({}, oracle="machine"))
    measured = float(workload.seconds.sum())
    slowdown = profile_slowdown(rows, nominal, measured, workload.measured_batch)
    return replace(machine, slowdown=slowdown)


def _list_runs(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Layers, as often as they are counted."""
    return tuple(n for n, count in enumerate(counts) for _ in range(count))


def make_run(
    workload: Workload, strategy: Strategy, settings: Settings, axes: Any, answer: Any
) -> Run:
    """What the reference is asked."""
    fixed = settings.parameters
    placement, _ = divide_rows(workload, strategy, axes, settings).groups.place()
    p1, p2 = int(number(answer.replicas)), int(number(answer.group))
    factors = np.asarray(placement.factors).reshape(3, -1)[:, 0].astype(int).tolist()
    accumulate = int(fixed.get("accumulate", 1))
    batch = float(axes["batch"][0])
    several = strategy.placed and p2 > 1
    alone = settings.options.algorithm == "auto" and sends_whole_gradients(workload.system)
    cut = strategy.segments if isinstance(strategy.segments, int) else 1
    placed = workload.placed.find(p2, cut) if several else None
    return Run(
        group="+".join(strategy.parts) or "none",  # type: ignore[arg-type]  # one of the reference's
        p1=p1,
        p2=p2,
        factors=tuple(factors),
        ends=tuple(np.asarray(placement.ends).reshape(len(placement.ends), -1)[:p2, 0].tolist()),
        devices=placed.device if placed else (),
        forward=_list_runs(placed.forward) if placed else (),
        backward=_list_runs(placed.backward) if placed else (),
        messages=placed.messages if placed else 0.0,
        items=placed.items if placed else 0.0,
        segments=cut if strategy.placed else int(fixed.get("segments", 4)),
        b=samples_of_a_pass(batch, settings.scaling, accumulate, p1),
        accumulate=accumulate,
        samples=workload.samples,
        optimizer=settings.options.optimizer,
        recompute=settings.options.recompute == "full",
        iterations=settings.options.iterations,
        algorithm=name_algorithm(settings.options.algorithm),
        gradients="ring" if alone else None,
        phi=fixed.get("phi"),
        zero=strategy.zero or 0,
        schedule=strategy.schedule,
    )


def build_language_grid(system: str = "dgx1-v100", strategy: str = "data") -> Grid:
    axes = {
        "model": [make_model(sparse=True)],
        "dataset": [WORDS],
        "system": system,
        "strategy": strategy,
        "pe": 4,
        "batch": 32,
    }
    return Grid.from_spec(validate_spec({"axes": axes, "calibration": "none"}, ""))


@pytest.mark.parametrize("optimizer", ["none", "adam"])
@pytest.mark.parametrize("batch", [1, 32, 90_000])
@pytest.mark.parametrize(
    ("system", "strategy", "pe"),
    [
        ("dgx1-v100", "data", 1),
        ("dgx1-v100", "data", 8),
        ("dgx1-v100:precision=amp", "data+pipeline:group=2", 8),
        ("abci", "filter", 4),
        ("abci", "data+channel:group=2", 64),
    ],
)
def test_tables_with_sparse_gradients_agree_with_the_scalar_reference(
    system, strategy, pe, batch, optimizer
):
    grid = build_language_grid(system=system, strategy=strategy)
    workload = grid.workload(0, 0, 0)
    assert workload is not None
    options = grid.options
    options = type(options)(**{**vars(options), "optimizer": optimizer})
    settings = Settings({"accumulate": 2.0, "segments": 2.0}, "weak", options, "machine")
    axes = {"pe": np.array([pe], float), "batch": np.array([batch], float)}
    parsed = parse_strategy(strategy)
    answer = answer_case(build_case(workload, parsed, axes, settings))
    rows, machine = make_rows(workload, parsed, settings, axes), make_machine(workload, settings)
    asked = ask_alone(rows, make_run(workload, parsed, settings, axes, answer))
    expected = by_hand.epoch(rows, machine, asked)
    for name in TERMS:
        value = number(getattr(answer.terms, name))
        if name != "hidden_communication":
            assert value == pytest.approx(expected.get(name, 0.0), rel=TOLERANCE, abs=1e-300), name
    memory = by_hand.memory(rows, machine, asked)["total"]
    np.testing.assert_allclose(number(answer.memory), memory, TOLERANCE)
