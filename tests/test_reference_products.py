"""Products of parallelisms inside a replica: the oracle's answers against the scalar reference's.

The reference itself is held by figures worked out by hand, by the reference of a parallelism alone,
and by the oracle's answers for such.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import reference_machine
import reference_memory
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from machine_toys import CONV, FC, RELU
from machine_toys import MACHINE as TOY_MACHINE
from product_cases import Case, Degrees, cases, make_machine, make_product, make_rows, make_table
from reference_parts import Layer, Run
from reference_products import Product, epoch, hidden_time, largest_batch, limits, memory, terms
from reference_products_exchange import gradient_ring
from reference_products_parts import SAMPLE, crossing_items, cut_stages

import sweep

TOLERANCE = 1e-9
MARKS = {"uneven", "batch_exceeds_dataset"}  # which forbid nothing


def degrees(kind: str = "filter", **names: tuple[int, ...]) -> st.SearchStrategy[Degrees]:
    """Some degrees of each parallelism that is named."""
    some = {name: st.sampled_from(counts) for name, counts in names.items()}
    return st.builds(Degrees, kind=st.just(kind), **some)


DATA = {"replicas": (2, 1, 3, 6)}
SPATIAL = {"spatial": (2, 3, 4)}
PARTS = {"parts": (2, 4)}
PIPELINE = {"pipeline": (2, 3, 4)}

ALONE = {
    "data": degrees(**DATA),
    "data+spatial": degrees(**DATA, spatial=(2, 3, 4, 16)),
    "data+filter": degrees(**DATA, parts=(2, 4, 16)),
    "data+channel": degrees("channel", **DATA, parts=(2, 4, 16)),
    "data+pipeline": degrees(**DATA, pipeline=(2, 3, 4, 7)),
    "spatial": degrees(**SPATIAL),
    "filter": degrees(**PARTS),
    "channel": degrees("channel", **PARTS),
    "pipeline": degrees(**PIPELINE),
}
TOGETHER = {
    "data+spatial+pipeline": degrees(**DATA, **SPATIAL, **PIPELINE),
    "data+filter+pipeline": degrees(**DATA, **PARTS, **PIPELINE),
    "data+channel+pipeline": degrees("channel", **DATA, **PARTS, **PIPELINE),
    "data+spatial+filter": degrees(**DATA, **SPATIAL, **PARTS),
    "spatial+pipeline": degrees(**SPATIAL, **PIPELINE),
    "data+spatial+filter+pipeline": degrees(**DATA, **SPATIAL, **PARTS, **PIPELINE),
    "spatial+channel+pipeline": degrees("channel", **SPATIAL, **PARTS, **PIPELINE),
}


# The oracle's answers.


@pytest.mark.parametrize("layout", ALONE)
@limit_examples(6)
@given(data=st.data())
def test_a_parallelism_alone_agrees(layout: str, data: st.DataObject) -> None:
    assert_agrees(data.draw(cases(ALONE[layout])))


@pytest.mark.parametrize("layout", TOGETHER)
@limit_examples(10)
@given(data=st.data())
def test_products_agree(layout: str, data: st.DataObject) -> None:
    assert_agrees(data.draw(cases(TOGETHER[layout])))


def assert_agrees(case: Case) -> None:
    """Every number of an answer."""
    answer = sweep.predict(**case.asked)
    rows, machine, asked = make_rows(make_table(case)), make_machine(case), make_product(case)
    forbidden = limits(rows, machine, asked)
    if answer["memory"] is None:  # no such configuration has a time
        assert set(answer["limit"]) - MARKS == forbidden - {"memory"}
        return
    assert set(answer["limit"]) - MARKS == forbidden
    assert (answer["replicas"], answer["group"]) == (asked.run.p1, asked.group)
    expected = epoch(rows, machine, asked)
    expected["hidden_communication"] = hidden_time(rows, machine, asked)
    assert answer["terms"] == pytest.approx(expected, rel=TOLERANCE, abs=1e-300)
    held = memory(rows, machine, asked)["total"]
    assert answer["memory"] == pytest.approx(held, rel=TOLERANCE)
    assert answer["largest_batch"] == largest_batch(rows, machine, asked)


@pytest.mark.parametrize("name", ["spatial", "parts", "pipeline"])
@limit_examples(5)
@given(data=st.data())
def test_a_degree_of_1_is_no_parallelism(name: str, data: st.DataObject) -> None:
    """Of two others, or of one other."""
    case = data.draw(cases(TOGETHER["data+spatial+filter+pipeline"]))
    if data.draw(st.booleans()):
        other = data.draw(st.sampled_from(sorted({"spatial", "parts", "pipeline"} - {name})))
        case = replace(case, degrees=replace(case.degrees, **{other: 0}))
    one, none = (replace(case, degrees=replace(case.degrees, **{name: n})) for n in (1, 0))
    first, second = sweep.predict(**one.asked), sweep.predict(**none.asked)
    assert first["terms"] == pytest.approx(second["terms"], rel=1e-12, abs=1e-300)
    for answer in ("memory", "limit", "largest_batch", "replicas", "group"):
        assert first[answer] == second[answer]
    assert_agrees(one)


STRATEGIES = {
    "data+spatial+pipeline:spatial=2,pipeline=3,segments=2,split=hw": (2, 0, 3),
    "data+filter+pipeline:filter=4,pipeline=2,segments=2": (0, 4, 2),
    "data+spatial+filter:spatial=2,filter=2,split=hw": (2, 2, 0),
}


@limit_examples(3)
@given(cases(degrees(replicas=(1,))))
def test_spaces_of_products_agree(case: Case) -> None:
    """In single precision, over all combinations."""
    pes, batches = [8, 12, 24], [2, 9]
    space = {"pe": pes, "batch": batches, "strategy": list(STRATEGIES)}
    outputs = ("comp_time", "memory", "replicas")
    settings = case.settings | {"outputs": list(outputs)}
    cube = sweep.compute_space(**case.asked | space | {"settings": settings})
    rows, machine = make_rows(make_table(case)), make_machine(case)
    for label, (spatial, parts, pipeline) in STRATEGIES.items():
        for pe in pes:
            group = max(1, spatial) * max(1, parts) * max(1, pipeline)
            some = Degrees(pe // group, spatial, parts, pipeline)
            for batch in batches:
                cell = cube.sel(strategy=label, pe=pe, batch=batch)
                answer = [float(cell[name].item()) for name in outputs]
                if pe % group:
                    assert np.isnan(answer).all()
                    continue
                asked = make_product(
                    replace(case, degrees=some, batch=batch, dims="hw", segments=2)
                )
                times = epoch(rows, machine, asked)
                compute = sum(times[name] for name in COMPUTE)
                held = memory(rows, machine, asked)["total"]
                assert answer == pytest.approx([compute, held, pe // group], rel=1e-6)


COMPUTE = (
    *("forward_backward", "pipeline_bubble", "pass_overhead", "launch_wait", "weight_update"),
    *("split_overhead", "gradient_packing", "input_wait"),
)


# The reference of a parallelism alone.


@pytest.mark.parametrize("layout", ALONE)
@limit_examples(6)
@given(data=st.data())
def test_the_reference_of_a_product_is_that_of_one_parallelism(
    layout: str, data: st.DataObject
) -> None:
    case = data.draw(cases(ALONE[layout]))
    rows, machine, asked = make_rows(make_table(case)), make_machine(case), make_product(case)
    group: Any = layout.rpartition("+")[2].replace("data", "none")
    run = replace(asked.run, group=group, p2=asked.group, factors=asked.factors)
    mask = asked.in_space if group == "spatial" else asked.in_parts
    single = [
        replace(
            row,
            divided=one,
            crossing=crossing_items(rows, n + 1, asked),
            inputs=tuple(each for each in row.inputs if each >= 0),
        )
        for n, (row, one) in enumerate(zip(rows, mask, strict=True))
    ]
    expected = reference_machine.epoch(single, machine, run)
    assert epoch(rows, machine, asked) == pytest.approx(expected, rel=1e-12)
    hidden = reference_machine.hidden_time(single, machine, run)
    assert hidden_time(rows, machine, asked) == pytest.approx(hidden, rel=1e-12)
    assert memory(rows, machine, asked) == reference_memory.memory(single, machine, run)


# By hand: the toy in stages of a convolution with its activation, and of a fully connected layer.

TOY = tuple(replace(layer, inputs=(n - 1,)) for n, layer in enumerate((CONV, RELU, FC)))
MACHINE = replace(TOY_MACHINE, layer_overhead=0.0)
PIPED = Run(group="pipeline", p2=2, ends=(2, 3), segments=4, b=2.0, samples=16.0)
FIRST, NONE = (True, False, False), (False, False, False)
PIPELINE_OF_HALVES = Product(run=PIPED, in_space=FIRST, in_parts=NONE, factors=(1, 2, 1))
PIPELINE_OF_FILTERS = Product(run=PIPED, in_space=NONE, in_parts=FIRST, parts=2)


def assert_terms(asked: Product, layers: tuple[Layer, ...] = TOY, **expected: float) -> None:
    """Those terms, and no others."""
    some = {name: seconds for name, seconds in terms(layers, MACHINE, asked).items() if seconds}
    assert some == pytest.approx(expected)


def test_stages_of_halves_by_hand() -> None:
    # 5 steps of half a sample. Halos of 8 and 16 items in a node; the gather of 64 items; 32 items
    # from stage to stage, of two PEs at once, which have 1 B/s each. 640 weights of two PEs.
    assert_terms(
        PIPELINE_OF_HALVES,
        forward_backward=2 * 153.6,
        pipeline_bubble=2 * 153.6 / 4,
        pass_overhead=5 * 7.8,
        weight_update=13.0,
        halo_exchange=5 * (2 * (1 + 16 / 4) + 2 * (1 + 32 / 4)),
        split_gather=5 * 2 * (1 + 128 / 2 / 4),
        point_to_point=8 * (2 + 64 / 1),
        gradient_exchange=2 * (1 + 1280 / 2 / 4),
    )


def test_stages_of_filters_by_hand() -> None:
    # All 64 items pass from stage to stage, of both PEs.
    assert_terms(
        PIPELINE_OF_FILTERS,
        forward_backward=2 * 153.6,
        pipeline_bubble=2 * 153.6 / 4,
        pass_overhead=5 * 7.8,
        weight_update=13.0,
        layer_collectives=5 * 2 * (1 + 128 / 2 / 4),
        point_to_point=8 * (2 + 128 / 1),
    )
    # conv and relu: 200 bytes of masks and tensors kept, as without filters; fc has most states.
    assert memory(TOY, MACHINE, PIPELINE_OF_FILTERS)["states"] == 7800


def test_halves_of_filters_by_hand() -> None:
    """Rows and filters of a convolution: a quarter of it; halos are of its own 2 filters."""
    asked = Product(
        run=replace(PIPED, p2=1), in_space=FIRST, in_parts=FIRST, factors=(1, 2, 1), parts=2
    )
    # Two samples; rows are two PEs apart, and two PEs send at once; a row's 4 x 8 items are
    # gathered in a node. Gradients: 2 x (36 + 640) bytes in rings of two PEs.
    gather = min(1 + 512 / 2 / 1 + 1, 2 + 512 / 2 / 1)
    assert_terms(
        asked,
        forward_backward=2 * (138.24 / 4 + 2.56 / 2 + 153.6),
        pass_overhead=0.48 + 7.8,
        weight_update=20 * (36 + 4 + 650) / 1000,
        halo_exchange=2 * (2 + 64 / 1) + 2 * (2 + 64 / 1),
        split_gather=2 * gather,
        layer_collectives=2 * (1 + 256 / 2 / 4),
        gradient_exchange=2 * (2 + 1352 / 2 / 1),
    )


def test_stages_are_cut_by_the_own_parts() -> None:
    # s 138.24 | 76.8 | 76.8; of a quarter of the rows 34.56 | 76.8 | 76.8
    half = replace(FC, flops=640, inputs=(0,))
    layers = (TOY[0], half, replace(half, inputs=(1,)))
    asked = replace(PIPELINE_OF_HALVES, in_space=NONE)
    for rows, ends in ((1, (1, 3)), (4, (2, 3))):
        assert cut_stages(layers, MACHINE, replace(asked, factors=(1, rows, 1))) == ends


def test_each_tensor_crosses_a_border_with_its_own_rows() -> None:
    # 32 items of a sample of 4 rows, 64 of 4 rows, 16 of 2; each once, however many read it.
    narrow = replace(CONV, y=16, extents_y=(1, 2, 2), inputs=(0,))
    layers = (TOY[0], narrow, replace(RELU, inputs=(0, 1, SAMPLE)), replace(RELU, inputs=(1, 2)))
    for rows, items in ((1, 112), (2, 56), (4, 32 / 4 + 64 / 4 + 16 / 2)):
        asked = replace(PIPELINE_OF_HALVES, factors=(1, rows, 1))
        assert crossing_items(layers, 2, asked) == items


# Nodes of 4 PEs with 2 links, racks of 4 nodes: see test_reference_machine_network.py.
RACKS = replace(
    MACHINE,
    pes_per_node=4,
    links_per_node=2,
    levels=[(4, 1.0, 16.0), (16, 2.0, 4.0), (64, 4.0, 2.0)],
)


@pytest.mark.parametrize(
    ("replicas", "stages", "rows", "parts", "speed", "shared", "rail"),
    [
        # A node has a stage: one ring leaves it, and four a rack. Rails are of each PE.
        (4, 4, 4, 1, 4, 4, 1),
        # A node has two parts of filters of one stage, a rack of two replicas four rings.
        (8, 2, 2, 2, 2, 2, 1),
        # A node has half a stage: two parts of filters.
        (4, 2, 4, 2, 2, 2, 1),
        # A node has two stages of two PEs.
        (4, 8, 2, 1, 2, 2, 1),
        # A node has all stages, twice: two rings.
        (32, 2, 1, 1, 2, 2, 1),
        # Rows of one stage: one ring of all.
        (4, 1, 16, 1, 4, 4, 1),
        (4, 16, 1, 1, 1, 1, 1),
    ],
)
def test_rings_of_gradients(
    replicas: int, stages: int, rows: int, parts: int, speed: float, shared: int, rail: float
) -> None:
    run = Run(group="pipeline", p1=replicas, p2=stages)
    asked = Product(run=run, in_space=(), in_parts=(), factors=(1, rows, 1), parts=parts)
    assert asked.p == 64
    over = gradient_ring(RACKS, asked)
    assert over.way == pytest.approx((4, 1 / speed))
    assert (over.q, over.h) == (replicas * rows, shared)
    assert over.rail == pytest.approx((4, 1 / rail))
