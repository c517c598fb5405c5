"""Searches of layouts against the evaluation of each layout by itself, to the last bit."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from paradl.kernels.search.search import Search

from paradl.grids.entries.precision import RECIPES
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.kernels.columns import add
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.oracle.blocks import time_layouts
from paradl.kernels.parallelism.layout import find_marks, find_reasons, find_repeated
from paradl.kernels.search import search
from paradl.kernels.search.candidates import LayoutProduct, list_product, make_space, multiply
from paradl.kernels.search.stacks import find_unsupported
from paradl.kernels.work.block_memory import measure_bucket, measure_memory
from paradl.kernels.work.layouts import COLUMNS
from paradl.kernels.work.transformer import Training

MACHINE = find("system", "dgx-h100", Path())
BATCH = 96
RECOMPUTED = (0, RECOMPUTE["mlp"], RECOMPUTE["blocks"], RECOMPUTE["full"])
# A network, PEs, the schedule, and the memory of a PE, which some layouts of each exceed.
CASES = [
    ("llama2_7b", 24, "1f1b", 40e9),
    ("deepseek_v3", 8, "1f1b", 3e12),
    ("t5_11b", 8, "zbv", 60e9),
    ("gpt3_175b", 32, "gpipe", 120e9),
]


def make_search(case, speeds=True, most=None):
    name, pes, schedule, capacity = case
    net = read_transformer(find("model", name, Path()))
    training = Training(BATCH, 2048, RECIPES["bf16"], schedule, reserved=1e9)
    chunks = (1, 2, 3) if schedule == "1f1b" else (1,)
    lists = {"recompute": RECOMPUTED, "chunks": chunks, "group": (0,)}
    return Search(
        net,
        make_space(net, pes, BATCH, lists),
        training,
        capacity,
        MACHINE.pes_per_node,
        Stack(Machine(MACHINE), "bf16").find_speeds() if speeds else None,
        most,
    )


@pytest.fixture(params=CASES, ids=lambda case: case[0])
def case(request):
    return request.param


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks, so that what they have is joined."""
    monkeypatch.setattr(search, "BLOCK", 2**13)


@cache
def run_search(case, speeds=True):
    """A search and its result; all tests of a case ask the same one."""
    searched = make_search(case, speeds)
    return searched, searched.run()


@cache
def list_directly(case):
    """The candidates of a search one by one: rows, and masks and memory of these."""
    searched = make_search(case)
    micro = [1 << bit for bit in range(BATCH.bit_length())]
    values = {
        "micro": micro,
        "recompute": RECOMPUTED,
        "zero": range(4),
        "sequence": (0, 1),
        "chunks": np.unique(searched.space.layouts.chunks).tolist(),
        "expert": np.unique(searched.space.layouts.expert),
        "expert_tensor": (0, 1) if searched.net.experts else (0,),
    }
    pes = int(searched.space.layouts.pes.max())
    layouts = list_product(multiply(searched.net, pes, values).layouts)
    fits = layouts.micro * layouts.data <= BATCH
    fits &= layouts.tensor * layouts.shards % (layouts.etp * layouts.expert) == 0
    layouts = layouts.select(fits & ~find_repeated(layouts))
    reasons = find_reasons(searched.net, layouts, searched.training)
    divides = np.sum([*reasons.values()], axis=0) == 0
    memory = np.full(len(layouts), np.nan)
    parts, _ = measure_memory(searched.net, layouts.select(divides), searched.training)
    memory[divides] = add(parts.values())
    return layouts, reasons, memory


@cache
def rank_directly(case):
    """Seconds of each row that fits, and of the fastest micro-batch of what is alike but for it."""
    searched = make_search(case)
    layouts, _, memory = list_directly(case)
    layouts = layouts.select(memory <= searched.capacity)
    seconds = add(time_layouts(searched.net, layouts, searched.training, *searched.speeds))
    best: dict[tuple[int, ...], float] = {}
    for row, time in zip(layouts.to_rows().tolist(), seconds.tolist(), strict=True):
        others = tuple(n for n, name in zip(row, COLUMNS, strict=True) if name != "micro")
        best[others] = min(best.get(others, np.inf), time)
    return dict(zip(map(tuple, layouts.to_rows().tolist()), seconds, strict=True)), best


def test_counts_are_those_of_every_candidate(case):
    searched, result = run_search(case)
    layouts, reasons, memory = list_directly(case)
    outcomes = np.bincount(searched.outcomes.ravel(), minlength=4)[1:]
    large, fits = (
        np.sum(mask) for mask in (memory > searched.capacity, memory <= searched.capacity)
    )
    assert min(large, fits) > 0
    assert outcomes.tolist() == [np.isnan(memory).sum(), large, fits]
    number = np.sum([*reasons.values()], axis=0)
    for name, mask in reasons.items():
        assert result.reasons[name] == mask.sum()
        assert result.alone[name] == (mask & (number == 1)).sum()
    least = np.flatnonzero(memory == np.nanmin(memory))[0]
    assert result.smallest.layouts.to_rows().tolist() == [layouts.to_rows()[least].tolist()]
    assert result.smallest.memory == memory[least]
    assert result.least_large == memory[memory > searched.capacity].min()


def test_the_best_are_those_of_every_candidate(case):
    searched, whole = run_search(case)
    result = whole.best
    layouts, _, memory = list_directly(case)
    seconds, best = rank_directly(case)
    rows = [*map(tuple, result.layouts.to_rows().tolist())]
    assert [seconds[row] for row in rows] == result.score.tolist()  # to the last bit
    assert result.score.tolist() == sorted(best.values())
    assert searched.count_ranked() == len(best)
    sizes = dict(zip(map(tuple, layouts.to_rows().tolist()), memory, strict=True))
    assert [sizes[row] for row in rows] == result.memory.tolist()


@pytest.mark.parametrize("stack", [None, "megatron", "torchtitan"])
def test_fronts_are_what_no_candidate_beats(case, stack):
    """Of those that the stack runs, if any."""
    searched = replace(make_search(case), front=True, stack=stack)
    result = searched.run().best
    layouts, _, memory = list_directly(case)
    refused = find_unsupported(stack, searched.net, layouts, searched.training)
    runs = {*map(tuple, layouts.to_rows()[~refused].tolist())}
    seconds = {row: time for row, time in rank_directly(case)[0].items() if row in runs}
    sizes = dict(zip(map(tuple, layouts.to_rows().tolist()), memory.tolist(), strict=True))
    points = {(time, sizes[row]) for row, time in seconds.items()}
    front = {
        one
        for one in points
        if not any(a <= one[0] and b <= one[1] and (a, b) != one for a, b in points)
    }
    rows = [*map(tuple, result.layouts.to_rows().tolist())]
    kept = [*zip(result.score.tolist(), result.memory.tolist(), strict=True)]
    assert kept == [(seconds[row], sizes[row]) for row in rows]
    assert sorted(front) == sorted({*kept})
    assert result.score.tolist() == sorted(result.score)
    # Layouts of the same time and memory are all there.
    assert {*rows} == {row for row, time in seconds.items() if (time, sizes[row]) in front}


@pytest.mark.parametrize("speeds", [True, False])
def test_few_are_the_first_of_all(case, speeds):
    """In the same order, whatever the threads."""
    whole = run_search(case, speeds)[1].best
    few = replace(make_search(case, speeds, 7), threads=3).run().best
    np.testing.assert_array_equal(few.layouts.to_rows(), whole.layouts.to_rows()[:7])


@pytest.mark.parametrize(
    ("stack", "speeds"), [("megatron", True), ("torchtitan", False), ("deepspeed", True)]
)
def test_what_a_stack_does_not_run_is_last(case, stack, speeds):
    """Otherwise the order is the same, also of few."""
    searched, whole = run_search(case, speeds)
    ranked = whole.best.layouts
    refused = find_unsupported(stack, searched.net, ranked, searched.training)
    assert 0 < refused.sum() < len(ranked)
    rows = ranked.to_rows()[np.argsort(refused, kind="stable")]
    for most in (None, 7):
        result = replace(make_search(case, speeds, most), stack=stack).run().best
        np.testing.assert_array_equal(result.layouts.to_rows(), rows[:most])


def test_layouts_without_time_have_the_largest_micro_batch(case):
    """First those with few remarks, then the least divided."""
    searched, whole = run_search(case, speeds=False)
    result = whole.best.layouts
    marks = add(
        mask.astype(int)
        for mask in find_marks(
            searched.net, result, searched.training, searched.pes_per_node
        ).values()
    )
    divided = result.tensor * result.context * result.pipeline
    keys = [*zip(marks.tolist(), divided.tolist(), strict=True)]
    assert keys == sorted(keys)
    assert searched.count_ranked() == len(result)


@pytest.mark.parametrize(
    "columns", [("micro",), ("zero",), ("chunks",), ("tensor", "data"), ("context", "data")]
)
def test_changes_that_would_help(case, columns):
    searched, _ = run_search(case)
    layouts, _, memory = list_directly(case)
    kept = [name not in columns for name in COLUMNS]
    rows = layouts.to_rows()[:, kept]
    # A higher stage of ZeRO has temporaries, too.
    bucket = measure_bucket(searched.net, layouts, searched.training)
    needed = memory + bucket * (columns == ("zero",))
    fitting = {*map(tuple, rows[needed <= searched.capacity].tolist())}
    large = map(tuple, rows[memory > searched.capacity].tolist())
    assert searched.count_helped(*columns) == sum(row in fitting for row in large)


def test_the_bucket_has_the_gradients_of_a_block():
    """Of Llama 2 7B: 4 bytes each of its matrices, which tensor divides, and two norms."""
    searched, _ = run_search(CASES[0])
    layouts, _, _ = list_directly(CASES[0])
    block = (4 * 4096**2 + 3 * 4096 * 11008) / layouts.tensor + 2 * 4096
    held = (layouts.zero >= 2) & (layouts.data * layouts.context > 1)
    bucket = measure_bucket(searched.net, layouts, searched.training)
    np.testing.assert_array_equal(bucket, 4 * block * held)


def test_a_list_is_a_space():
    searched, whole = run_search(CASES[0])
    best = whole.best
    some = best.layouts.select(np.arange(5))
    again = replace(searched, space=LayoutProduct.from_list(some)).run()
    np.testing.assert_array_equal(again.best.layouts.to_rows(), some.to_rows())
    assert again.best.score.tolist() == best.score[:5].tolist()
