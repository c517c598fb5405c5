"""Products of parallelisms inside a replica: the oracle agrees with the scalar reference.

The reference itself is checked by hand: test_reference_machine.py, test_reference_products_toy.py.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from product_cases import Case, Degrees, cases
from product_questions import make_machine, make_product, make_rows, make_table
from reference_products import epoch, hidden_time, largest_batch, limits, memory

import paradl

TOLERANCE = 1e-9
MARKS = {"uneven", "batch_exceeds_dataset"}  # which forbid nothing


def degrees(kind: Any = "filter", **names: Any) -> st.SearchStrategy[Degrees]:
    """Some degrees of each parallelism that is named."""
    some: dict[str, Any] = {name: st.sampled_from(counts) for name, counts in names.items()}
    return st.builds(Degrees, kind=st.just(kind), **some)


DATA: dict[str, Any] = {"replicas": (2, 1, 3, 6)}
SPATIAL: dict[str, Any] = {"spatial": (2, 1, 3, 4)}
PARTS: dict[str, Any] = {"parts": (2, 1, 4)}
PIPELINE: dict[str, Any] = {"pipeline": (2, 1, 3, 4)}

ALONE = (
    degrees(**DATA),
    degrees(**DATA, spatial=(2, 3, 4, 16)),
    degrees(**DATA, parts=(2, 4, 16)),
    degrees("channel", **DATA, parts=(2, 4, 16)),
    degrees(**DATA, pipeline=(2, 3, 4, 7)),
    degrees(**SPATIAL),
    degrees(**PARTS),
    degrees("channel", **PARTS),
    degrees(**PIPELINE),
)
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


@limit_examples(20)
@given(cases(st.one_of(ALONE)))
def test_a_parallelism_alone_agrees(case: Case) -> None:
    """As users write it; of random tables of layers: tests/test_machine_agreement.py."""
    assert_agrees(case)


@pytest.mark.parametrize("layout", TOGETHER)
@limit_examples(25)
@given(data=st.data())
def test_products_agree(layout: str, data: st.DataObject) -> None:
    assert_agrees(data.draw(cases(TOGETHER[layout])))


def assert_agrees(case: Case) -> None:
    """Every number of an answer."""
    answer = paradl.predict(**case.asked)
    rows, machine, product = make_rows(make_table(case)), make_machine(case), make_product(case)
    forbidden = limits(rows, machine, product)
    if answer["memory"] is None:  # no such configuration has a time
        assert set(answer["limit"]) - MARKS == forbidden - {"memory"}
        return
    assert set(answer["limit"]) - MARKS == forbidden
    assert (answer["replicas"], answer["group"]) == (product.run.p1, product.group)
    expected = epoch(rows, machine, product)
    expected["hidden_communication"] = hidden_time(rows, machine, product)
    assert answer["terms"] == pytest.approx(expected, rel=TOLERANCE, abs=1e-300)
    held = memory(rows, machine, product)["total"]
    assert answer["memory"] == pytest.approx(held, rel=TOLERANCE)
    assert answer["largest_batch"] == largest_batch(rows, machine, product)


STRATEGIES = {
    "data+spatial+pipeline:spatial=2,pipeline=3,segments=2,split=hw": (2, 0, 3),
    "data+filter+pipeline:filter=4,pipeline=2,segments=2": (0, 4, 2),
    "data+spatial+filter:spatial=2,filter=2,split=hw": (2, 2, 0),
}


@limit_examples(3)
@given(cases(degrees(replicas=(1,))))
def test_spaces_of_products_agree(case: Case) -> None:
    """In single precision, over all combinations."""
    pes, batches = [8, 12], [2, 9]
    space = {"pe": pes, "batch": batches, "strategy": list(STRATEGIES)}
    outputs = ("comp_time", "memory", "replicas")
    settings = case.settings | {"outputs": list(outputs)}
    cube = paradl.compute_space(**case.asked | space | {"settings": settings})
    rows, machine = make_rows(make_table(case)), make_machine(case)
    for label, (spatial, parts, pipeline) in STRATEGIES.items():
        for pe in pes:
            group = max(1, spatial) * max(1, parts) * max(1, pipeline)
            some = Degrees(pe // group, spatial, parts, pipeline)
            for batch in batches:
                cell = cube.sel(strategy=label, pe=pe, batch=batch)
                answer = [float(cell[name].item()) for name in outputs]
                if pe % group:
                    assert np.isnan(answer[:2]).all()
                    continue
                plain = replace(case, zero=0, schedule="gpipe")
                product = make_product(
                    replace(plain, degrees=some, batch=batch, dims="hw", segments=2)
                )
                times = epoch(rows, machine, product)
                compute = sum(times[name] for name in COMPUTE)
                held = memory(rows, machine, product)["total"]
                assert answer == pytest.approx([compute, held, pe // group], rel=1e-6)


COMPUTE = (
    *("forward_backward", "pipeline_bubble", "pass_overhead", "launch_wait", "weight_update"),
    *("split_overhead", "gradient_packing", "input_wait"),
)
