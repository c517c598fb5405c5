"""Layouts in their limits: domains of 72 PEs, causality, windows, contexts, chunks, experts."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from short_layouts import read_layout

from paradl.grids.design_space import Configuration
from paradl.grids.entries.precision import RECIPES
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.kernels.oracle.block_times import COMPUTING, time_iteration
from paradl.kernels.parallelism.layout import find_marks, find_reasons
from paradl.kernels.search.candidates import find_candidates
from paradl.kernels.work.schedules import list_chunks
from paradl.kernels.work.transformer import Training
from paradl.sweep.questions.predict import predict_grid

H100, A100 = (find("system", name, Path()) for name in ("dgx-h100", "dgx-a100-80gb"))
RACKS = find("system", "gb200-nvl72", Path())


def read(name):
    return read_transformer(find("model", name, Path()))


DEEPSEEK, LLAMA_8B, LLAMA_405B = map(read, ("deepseek_v3", "llama3_8b", "llama3_405b"))


def predict(net, layout, pes, batch, length=4096, system=H100, precision="bf16", **changes):
    """Seconds of an iteration by term. changes: of the rates."""
    training = Training(batch, length, RECIPES[precision])
    rates, fabric = Stack(Machine(system), precision).find_speeds()
    rates = replace(rates, **changes)
    terms = time_iteration(net, read_layout(layout, pes), training, rates, fabric)
    return {name: float(seconds[0]) for name, seconds in terms.items()}


def add(terms):
    return sum(terms.values())


def resize_domain(pes):
    """GB200 in domains of another size, 8 to a unit."""
    spans = (pes, 8 * pes, 128 * pes)
    levels = [
        level.model_copy(update={"pes": span})
        for level, span in zip(RACKS.levels, spans, strict=True)
    ]
    changes = {"levels": tuple(levels), "pes_per_node": pes, "links_per_node": pes}
    return RACKS.model_copy(update=changes | {"size": 128 * pes})


@pytest.mark.parametrize("experts", [16, 32, 64])
def test_experts_of_a_rack_of_72_exchange_as_in_one_of_64(experts):
    words = f"pp4 v4 ep{experts} dp64 mb1 zero1 recompute=blocks"
    whole, racks = (
        predict(DEEPSEEK, words, 256, 4096, system=system, precision="mxfp8")
        for system in (resize_domain(64), RACKS)
    )
    assert racks == pytest.approx(whole, rel=1e-12)
    assert racks["expert_exchange"] < 0.3 * add(racks)


def test_more_experts_a_group_are_not_slower_on_a_rack():
    """As NVIDIA's recipes have them: with 16 or 32 parts in place of 8."""
    few, *more = (
        add(predict(DEEPSEEK, f"pp8 ep{e} dp32 mb1 zero1", 256, 2048, 4096, RACKS, "mxfp8"))
        for e in (8, 16, 32)
    )
    assert max(more) < 1.01 * few


def test_groups_that_are_cut_are_slow_and_not_forbidden():
    """On 128 racks 4,608 PEs lie in whole groups of 64, and 9,216 take all PEs of the racks."""
    seconds = [
        add(predict(DEEPSEEK, words, pes, 9216, system=RACKS, precision="mxfp8"))
        for words, pes in (("ep64 pp9 dp512 mb1", 4608), ("ep64 pp9 dp1024 mb1", 9216))
    ]
    assert seconds[1] > seconds[0]


@pytest.mark.parametrize(("pes", "words"), [(1000, "tp8 pp5 dp25"), (1024, "tp8 pp2 dp64")])
def test_a_full_cluster_trains(pes, words):
    """InfiniBand units of 256 PEs hold no whole number of groups of 200: these straddle them."""
    asked = Configuration(
        *("llama3_70b", f"{words} mb1 zero1 sp", pes),
        system="dgx-h100",
        sequence=4096,
        global_batch=pes // 8 * 4,
    )
    assert predict_grid(asked.grid())["feasible"]


def test_meta_ran_llama_405b_with_ends_as_blocks():
    """16 stages of 8 chunks: 126 blocks, embedding and loss (Llama 3, section 3.3.2)."""
    layout = read_layout("tp8 pp16 v8 dp8 mb1 zero1 sp", 1024)
    training = Training(512, 8192, RECIPES["bf16"])
    assert not any(mask[0] for mask in find_reasons(LLAMA_405B, layout, training).values())
    marks = find_marks(LLAMA_405B, layout, training, H100.pes_per_node)
    assert not marks["uneven_stages"][0]
    assert list_chunks(LLAMA_405B, 16) == [1, 2, 4, 8]
    assert list_chunks(LLAMA_405B, 9) == [1, 2, 7, 14]
    assert list_chunks(LLAMA_405B, 1) == list_chunks(LLAMA_405B, 5) == [1]


def test_searches_try_all_chunks_that_divide():
    gpt = read("gpt3_175b")  # 96 blocks
    training = Training(64, 2048, RECIPES["bf16"])
    found, _ = find_candidates(gpt, training, 64, 64, {"pipeline": (8,), "micro": (1,)})
    assert {*found.layouts.chunks.ravel().tolist()} == {1, 2, 3, 4, 6, 12}


def test_a_context_costs_more_than_replicas():
    """With as many tokens on each PE: start-ups, launches, and pieces where these are short."""
    layouts = ("dp8 mb1 zero3", "cp2 dp4 mb2 zero3", "cp8 mb8 zero3")
    ratios = []
    for length in (4096, 131072):
        data, *contexts = (add(predict(LLAMA_8B, words, 8, 128, length)) for words in layouts)
        assert data < contexts[0] < contexts[1]
        ratios.append(contexts[1] / data)
    assert ratios[1] < ratios[0]
    ring = predict(LLAMA_8B, "cp8 mb8 zero3", 8, 128)["context_exchange"]
    assert ring == pytest.approx(32 * 16 * 7 * 3 * 3.4e-6)  # blocks, micro-batches, steps


@pytest.mark.parametrize(
    "software", ["megatron", "megatron-2021", "ddp", "fsdp", "jax", "deepspeed"]
)
def test_only_software_without_grouped_products_launches_each_expert(software):
    """DeepSpeed's experts run one by one: 256 on a PE keep the device waiting longer than 64."""
    system = H100.with_settings({"software": software, "precision": "bf16"})
    few, many = (
        predict(DEEPSEEK, f"{ep}dp4 mb1", 4, 4, 64, system)["launch_wait"] for ep in ("ep4 ", "")
    )
    assert (many > 3 * few > 1) == (software == "deepspeed")
    assert (many < 1e-5) == (software != "deepspeed")


def test_short_launches_keep_their_digits():
    """(D^4 + H^4)^(1/4) - D of a host that takes a millionth of the device's time."""
    terms = predict(LLAMA_8B, "dp8 mb1", 8, 8, launch=1e-9)
    device = Fraction(sum(terms[name] for name in COMPUTING))
    tensors = sum(len(LLAMA_8B.kinds[kind].tensors) for kind in LLAMA_8B.order)
    host = Fraction(tensors * 1e-9)
    expected = host**4 / (4 * device**3)  # the first term of its series
    assert terms["launch_wait"] == pytest.approx(float(expected), rel=1e-9)
