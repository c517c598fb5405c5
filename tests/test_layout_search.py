"""Searches of layouts against the evaluation of each candidate by itself, to the last bit."""

from dataclasses import replace
from functools import cache
from operator import itemgetter

import numpy as np
import pytest

from paradl.grids.design_space import ONLY, Configuration
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.inputs import layouts as search_module
from paradl.grids.inputs.case import find_space
from paradl.grids.inputs.layouts import LayoutSpace
from paradl.kernels.columns import add, find_any
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.oracle.block_times import time_iteration
from paradl.kernels.oracle.blocks import add_seconds, sum_memory
from paradl.kernels.parallelism.layout import find_repeated, list_rules
from paradl.kernels.search.candidates import join_candidates, multiply
from paradl.kernels.search.ranking import Tally
from paradl.kernels.search.stacks import find_unsupported
from paradl.kernels.work.layouts import COLUMNS

BATCH, RESERVED = 96, 1e9
# A network, PEs, the schedule, and the memory of a PE, which some layouts of each exceed.
CASES = [
    ("llama2_7b", 24, "1f1b", 40e9),
    ("deepseek_v3", 8, "1f1b", 3e12),
    ("t5_11b", 8, "zbv", 60e9),
    ("gpt3_175b", 32, "gpipe", 120e9),
]
SOFTWARE = ["plain", "megatron", "fsdp"]
MICRO = COLUMNS.index("micro")
MANY = 2**24
# Whether the software lacks a layout (1) or runs it, seconds of an epoch, columns, and memory [B].
Candidate = tuple[int, float, tuple[int, ...], float]


@pytest.fixture(params=CASES, ids=lambda case: case[0])
def case(request):
    return request.param


def make_space(case, software="plain", **axes):
    """All layouts of a case. axes: in place of its PEs and batch."""
    name, pes, schedule, capacity = case
    asked = Configuration(
        *(name, f"layouts:schedule={schedule}", pes),
        system=f"dgx-h100:software={software}",
        precision="bf16",
        global_batch=BATCH,
        sequence=2048,
        parameters={"memory_capacity": capacity, "reserved": RESERVED},
    )
    grid = asked.grid()
    axes = {**grid.axes, **{name: np.array(values, float) for name, values in axes.items()}}
    return grid.build(find_space, ONLY, axes, None)


@cache
def list_directly(case, software="plain"):
    """All candidates one by one: the layouts, the masks of rules, memory and seconds of an epoch.

    Memory and seconds are NaN where a rule forbids one.
    """
    blocks = make_space(case, software).blocks
    net, training = blocks.net, replace(blocks.training, batch=BATCH, reserved=RESERVED)
    values = {
        "micro": [1 << bit for bit in range(BATCH.bit_length())],
        "recompute": (0, RECOMPUTE["blocks"]),
        "zero": range(4),
        "sequence": (0, 1),
        "expert": (1, 2, 4, 8) if net.experts else (1,),
        "expert_tensor": (0, 1) if net.experts else (0,),
    }
    layouts = multiply(net, case[1], values)
    sensible = layouts.micro * layouts.data <= BATCH
    sensible = sensible & (layouts.tensor * layouts.shards % (layouts.etp * layouts.expert) == 0)
    kept = np.broadcast_to(sensible & ~find_repeated(layouts), layouts.shape)
    layouts = layouts.list_rows(np.nonzero(kept))
    masks = {name: rule.mask for name, rule in list_rules(net, layouts, training).items()}
    divides = ~find_any(masks.values())
    memory, time = np.full((2, len(layouts)), np.nan)
    some = layouts.select(divides)
    memory[divides] = sum_memory(net, some, training)
    seconds = [*time_iteration(net, some, training, *blocks.stack.find_speeds()).values()]
    # Added as those of a cell are, so that no digit differs.
    time[divides] = add(part * (blocks.samples / BATCH) for part in add_seconds(seconds))
    return layouts, masks, memory, time


@cache
def rank_directly(case, software="plain"):
    """Candidates that fit, best first."""
    blocks = make_space(case, software).blocks
    layouts, _, memory, time = list_directly(case, software)
    stack = blocks.stack.machine.system.software_facts.layouts.stack
    lacks = np.broadcast_to(
        find_unsupported(stack, blocks.net, layouts, blocks.training), time.shape
    )
    rows = map(tuple, layouts.to_rows().tolist())
    ranked = zip(lacks.tolist(), time.tolist(), rows, memory.tolist(), strict=True)
    # Of equal times the least memory, then the first.
    return sorted((one for one in ranked if one[3] <= case[3]), key=itemgetter(0, 1, 3, 2))


def search(case, most, software="plain"):
    """The best layouts that fit, as `rank_directly` has them, and the counts of all."""
    tally = Tally()
    found = make_space(case, software).search(most, tally)
    return list_rows(found.take(found.forbidden < 2)), tally


def list_rows(found):
    rows = map(tuple, found.rows.tolist())
    columns = (column.tolist() for column in (found.forbidden, found.value))
    return [*zip(*columns, rows, found.memory.tolist(), strict=True)]


def test_counts_are_those_of_every_candidate(case):
    _, tally = search(case, 1)
    layouts, masks, memory, _ = list_directly(case)
    large = memory > case[3]
    assert tally.candidates == len(layouts)
    assert 0 < tally.fitting == np.sum(memory <= case[3])
    # Rules of the batch are those of a cell, and asked of what breaks no other.
    blocks = make_space(case).blocks
    rules = list_rules(blocks.net, layouts, replace(blocks.training, batch=0))
    others = find_any(rule.mask for rule in rules.values())
    counts = {name: np.sum(rule.mask | masks[name] & ~others) for name, rule in rules.items()}
    assert tally.reasons == counts | {"memory": np.sum(large)}
    assert tally.least == memory[large].min()


@pytest.mark.parametrize("software", SOFTWARE)
def test_the_best_are_those_of_every_candidate(case, software):
    """Each at its best micro-batch; what the software does not run is last."""
    best: dict[tuple[int, ...], Candidate] = {}
    for one in rank_directly(case, software):
        row = one[2]
        best.setdefault(row[:MICRO] + row[MICRO + 1 :], one)
    for most in (7, MANY):
        assert search(case, most, software)[0] == [*best.values()][:most]


@pytest.mark.parametrize("software", SOFTWARE)
def test_fronts_are_what_no_candidate_beats(case, software):
    """Of those that the software runs; of equals the first."""
    first: dict[tuple[float, float], Candidate] = {}
    for one in rank_directly(case, software):
        if not one[0]:
            first.setdefault((one[1], one[3]), one)
    points = np.array([*first])
    other = points[:, None]
    beaten = np.any(np.all(other <= points, axis=2) & np.any(other < points, axis=2), axis=0)
    front = [one for one, is_beaten in zip(first.values(), beaten, strict=True) if not is_beaten]
    assert search(case, None, software)[0] == front


@pytest.mark.parametrize("software", SOFTWARE[1:])
def test_no_software_runs_every_layout(software):
    lacking = [one[0] for one in rank_directly(CASES[0], software)]
    assert 0 < sum(lacking) < len(lacking)


@pytest.mark.parametrize("most", [1, 7, None])
def test_parts_make_no_difference(case, most, monkeypatch):
    whole = search(case, most)
    monkeypatch.setattr(search_module, "MOST", 100)
    assert len([*join_candidates(make_space(case).list_candidates(100), 100)]) > 10
    assert search(case, most) == whole


def test_cells_have_the_best_of_each_alone(case):
    counts, batches = (8, case[1]), (BATCH, 128)
    space = make_space(case, pe=counts, batch=batches)
    found = space.search(7, Tally())
    chosen = space.build_case().blocks.columns
    chosen = np.stack([np.broadcast_to(chosen[name], space.shape).ravel() for name in COLUMNS], 1)
    for cell, (pe, batch) in enumerate((pe, batch) for pe in counts for batch in batches):
        alone = make_space(case, pe=[pe], batch=[batch]).search(7, Tally())
        assert list_rows(found.take(found.cell == cell)) == list_rows(alone)
        if alone.rows.size:  # else the cell has what is least forbidden
            assert chosen[cell].tolist() == alone.rows[0].tolist()


@pytest.mark.parametrize("fits", [True, False])
def test_cells_along_a_parameter_have_the_best_of_each_alone(case, fits, monkeypatch):
    """Of a wide range of values in any order.

    If no layout fits, too, which no parameter of time changes: each is tried with one network.
    """
    names = sorted(search_module.TIMING)
    if not fits:
        names, case = names[CASES.index(case) :: len(CASES)], (*case[:3], 1e9)
    spaces = {}
    for name in names:
        known = PARAMETERS[name]
        ends = (1e8, 1e16) if known.high == np.inf and known.unit != "s" else (1e-7, 1.0)
        values = np.geomspace(max(ends[0], known.low), min(ends[1], known.high), 9)
        spaces[name] = make_space(case, **{name: np.random.default_rng(0).permutation(values)})
    some = {name: space.build_case().blocks.columns for name, space in spaces.items()}
    monkeypatch.setattr(LayoutSpace, "_sort_cells", lambda space: None)
    for name, space in spaces.items():
        columns = space.build_case().blocks.columns
        assert all(np.array_equal(columns[key], some[name][key]) for key in COLUMNS), name
    if fits:  # else layouts of the least reason are all the same
        differ = [any(column.size > 1 for column in columns.values()) for columns in some.values()]
        assert sum(differ) > 5


def test_the_nearest_layout_has_the_least_memory(case):
    columns = make_space(case).build_case(nearest=True).blocks.columns
    least = min(rank_directly(case), key=lambda one: (one[3], one[2]))
    assert tuple(int(columns[name].item()) for name in COLUMNS) == least[2]
