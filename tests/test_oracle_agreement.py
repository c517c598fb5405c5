"""The kernels agree with the independent scalar reference, to 1e-5 and far better.

Random layers (sizes need not be consistent), machines, strategies and settings.
"""

from typing import Any

import numpy as np
import pytest
import reference
from budgets import limit_examples
from cases import at, reference_layers, reference_machine, reference_setup, workloads
from hypothesis import given
from hypothesis import strategies as st

from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.entries.strategy_words import TABLE_III
from paradl.grids.inputs.case import build_case
from paradl.grids.inputs.values import Settings
from paradl.kernels.names.flags import Limit
from paradl.kernels.names.terms import TERMS
from paradl.kernels.options import Options
from paradl.kernels.oracle.answer import answer_case

TOLERANCE = 1e-9  # the promise is 1e-5; float64 leaves no excuse

# A handful of option sets, each a program of its own.
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"algorithm": "tree", "iterations": "ceil", "optimizer": "adam"},
    {"algorithm": "best", "allreduce": "hierarchical"},
    {"algorithm": "best", "optimizer": "none"},
    {"allreduce": "hierarchical", "optimizer": "none", "iterations": "ceil"},
    {"conventions": "authors"},
)

SETTINGS = {
    "none": ("",),
    "pipeline": ("", "segments=1", "segments=7"),
    "spatial": ("", "split=all", "split=w", "split=hw,layers=all"),
    "filter": ("", "split=all"),
    "channel": ("", "layers=all"),
}


def strategies(inside: str) -> st.SearchStrategy[Strategy]:
    """Those with this strategy inside their groups, with each of their settings."""
    texts = []
    for base in TABLE_III:
        for setting in SETTINGS["+".join(parse_strategy(base).parts) or "none"]:
            group = ["", "group=1", "group=3"] if "+" in base else [""]
            texts += [f"{base}:{','.join(filter(None, (setting, g)))}" for g in group]
    return st.sampled_from(texts).map(parse_strategy)


parameters = st.fixed_dictionaries(
    {},
    optional={
        "gamma": st.floats(0.05, 1),
        "delta": st.sampled_from((2.0, 4.0, 8.0)),
        "phi": st.floats(1, 16),
        "segments": st.integers(1, 9).map(float),
        "group": st.integers(1, 9).map(float),
    },
)
# Half of them few enough for stages of seven layers, and parts of as many rows.
counts = st.integers(1, 8) | st.integers(1, 300)
pes = st.lists(counts, min_size=4, max_size=4, unique=True).map(sorted)
batches = st.lists(st.integers(1, 500), min_size=2, max_size=2, unique=True).map(sorted)


@pytest.mark.parametrize("inside", SETTINGS)
@limit_examples(50)
@given(data=st.data())
def test_every_cell_agrees_with_the_scalar_reference(inside, data) -> None:
    workload, strategy = data.draw(workloads()), data.draw(strategies(inside))
    options, fixed = data.draw(st.sampled_from(OPTIONS)), data.draw(parameters)
    strong, p, batch = data.draw(st.booleans()), data.draw(pes), data.draw(batches)
    chosen = Options(**options)
    setting = Settings(fixed, "strong" if strong else "weak", chosen)
    axes = {"pe": np.array(p, float), "batch": np.array(batch, float)}
    result = answer_case(build_case(workload, strategy, axes, setting))
    rows, machine = reference_layers(workload), reference_machine(workload.system)
    question = reference_setup(workload, strategy, setting, options)
    cells = [*np.ndindex(len(p), len(batch))]
    expected = [reference.predict(rows, machine, at(question, p[i], batch[j])) for i, j in cells]
    check(result, expected, (len(p), len(batch)))


def check(result, expected, shape) -> None:
    """Compare with the answers of all cells, in order."""

    def spread(values):
        return np.broadcast_to(values, shape).ravel()

    for name in TERMS:
        # Table III does not have every term: it is 0 wherever there is such a configuration.
        seconds = [
            one["terms"].get(name, 0.0 * one["terms"]["forward_backward"]) for one in expected
        ]
        value = spread(getattr(result.terms, name))
        np.testing.assert_allclose(value, seconds, rtol=TOLERANCE, err_msg=name)
    memory = [one["memory"] for one in expected]
    np.testing.assert_allclose(spread(result.memory), memory, rtol=TOLERANCE)
    flags = [Limit(int(value)) for value in spread(result.limit)]
    limits = [{str(flag.name).lower() for flag in some} for some in flags]
    assert limits == [one["limit"] for one in expected]
