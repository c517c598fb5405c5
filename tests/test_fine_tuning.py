"""Adapters, frozen parts, offload and packed documents, against papers and closed forms.

That they equal the scalar reference: tests/test_layouts.py, tests/test_layout_times.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import paradl
from paradl.grids.design_space import Configuration, SpaceValues, make_grid
from paradl.grids.entries.precision import RECIPES
from paradl.grids.grid import Grid
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.errors import InputError
from paradl.kernels.oracle.block_times import count_model_flops
from paradl.kernels.work.transformer import Training

PLACE = {"system": "dgx-h100:software=fsdp", "global_batch": 64, "sequence": 2048}
LLAMA_65B: dict[str, Any] = {  # LLaMA (Touvron et al. 2023), table 2
    "name": "llama_65b",
    "family": {
        **{"name": "llama", "blocks": 80, "features": 8192, "heads": 64, "hidden": 22016},
        "vocabulary": 32000,
    },
    "rank": 1,
}


def predict(model, words="dp8 mb1 zero1", pe=8, **more):
    return paradl.predict(model, words, pe, **{**PLACE, **more})


def count_trained(model):
    """Parameters that are trained; gradients of blocks have 4 bytes in bf16."""
    return predict(model, "dp8 mb1", precision="bf16")["memory_parts"]["gradients"] / 4


@pytest.mark.parametrize(
    ("model", "trained"),
    [
        # Of peft 0.17.1 with transformers 4.57.6 on the meta device, get_nb_trainable_parameters:
        # q_proj and v_proj of Llama 2 7B, all-linear of it, and of Llama 3 8B.
        ("llama2_7b:lora=8,targets=query+value", 4_194_304),
        ("llama2_7b:lora=64", 159_907_840),
        ("llama3_8b:lora=16", 41_943_040),
        # Hu et al. 2021, table 4: 4.7 million with r = 1.
        ("gpt3_175b:lora=1,targets=query+value", 96 * 2 * 2 * 12288),
        ("llama3_8b:lora=1,targets=mlp", 32 * 3 * (4096 + 14336)),
        ("llama3_8b:lora=1,targets=attention", 32 * (4 * 4096 + 2 * (4096 + 1024))),
    ],
)
def test_adapters_are_those_of_peft(model, trained):
    assert count_trained(model) == trained


def test_frozen_parts():
    """Of Llama 3 8B: tables of 128,256 words, 32 blocks; vocabulary is a multiple of 128."""
    table = 128_256 * 4096
    block = 4096 * (2 * 4096 + 2 * 1024 + 3 * 14336) + 2 * 4096
    for frozen in (0, 3, 32):
        expected = table + 4096 + (32 - frozen) * block
        assert count_trained(f"llama3_8b:freeze={frozen}") == expected


@pytest.mark.parametrize(
    ("targets", "less"),
    # Items per token and block that PyTorch saves fewer (saved_tensors_hooks; peft 0.17.1,
    # transformers 4.57.6): 1 h of them per norm, which is not fused there (9 in 4 blocks), and the
    # numbers of tokens, 8 bytes.
    [("query+value", 3185), ("all", 1097), ("mlp", 1641)],
)
def test_frozen_matrices_keep_what_pytorch_saves(targets, less):
    family = {"name": "llama", "blocks": 4, "features": 512, "heads": 8, "hidden": 1536}
    model = {"name": "small", "rank": 1, "family": {**family, "vocabulary": 1000}}
    place: dict[str, Any] = {"global_batch": 1, "sequence": 256, "precision": "bf16"}
    kept = [
        predict({**model, **tuning}, "dp1 mb1", 1, **place)["memory_parts"]["activations"]
        for tuning in ({}, {"tuning": {"lora": 8, "targets": targets}})
    ]
    assert (kept[0] - kept[1]) / (4 * 256 * 2) == less - 9 / 4 * 512 - 1


def test_memory_of_gpt_3_with_lora():
    """Hu et al. 2021, section 4.2: 350 GB, and 35 MB for a task with r = 4."""
    model = "gpt3_175b:lora=4,targets=query+value"
    parts = predict(model, "tp8 pp12 dp1 mb1 recompute=blocks", 96)["memory_parts"]
    assert parts["weights"] * 96 == pytest.approx(350e9, rel=0.1)  # the first stage has a table
    h, rank = 12288, 4
    assert 2 * 96 * 2 * 2 * rank * h == pytest.approx(35e6, rel=0.1)
    # Of 8 blocks of a stage each PE has all of A, and an eighth of B.
    assert parts["gradients"] == 4 * 8 * 2 * rank * (h + h / 8)


def test_qlora_of_65b_on_48_gb():
    """Dettmers et al. 2023: beyond 780 GB in 16 bits, below 48 GB in 4, with states paged."""
    place: Any = {"dataset": "pile:length=512", "system": "dgx-h100:software=fsdp,precision=bf16"}
    tuned = {**LLAMA_65B, "tuning": {"lora": 64, "weights": "nf4"}}
    settings = {"offload": "states"}
    small = paradl.predict(tuned, "dp1 mb1 recompute=blocks", 1, 1, settings=settings, **place)
    assert 35e9 < small["memory"] < 48e9
    whole = paradl.predict(LLAMA_65B, "dp1 mb1", 1, 1, **place)
    assert whole["memory_parts"]["weights"] * 6 > 780e9  # weights, gradients, two moments


def test_offloaded_activations_of_a_long_sequence(tmp_path):
    """TRL, pull requests 6845 and 6846: Qwen3 8B, 1,048,576 tokens on 8 H100: 56.2 GB."""
    config = {
        **{"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36},
        **{"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128},
        **{"intermediate_size": 12288, "vocab_size": 151936, "hidden_act": "silu"},
        **{"tie_word_embeddings": False, "max_position_embeddings": 40960},
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    memory = {}
    for offload in ("none", "activations"):
        answer = predict(
            str(path),
            "cp8 dp1 mb1 zero3 recompute=blocks",
            global_batch=1,
            sequence=2**20,
            settings={"offload": offload, "loss": "chunked"},
        )
        memory[offload] = answer["memory"]
    assert memory["none"] > 80e9
    assert memory["activations"] == pytest.approx(56.2e9, rel=0.1)


def test_frozen_matrices_have_two_of_three_products():
    net = read_transformer(find("model", "llama3_8b", Path()))
    tuned = read_transformer(find("model", "llama3_8b:lora=1", Path()))
    training = Training(1, 128, RECIPES["bf16"])  # short: hardly any attention
    share = count_model_flops(tuned, training) / count_model_flops(net, training)
    assert share == pytest.approx(2 / 3, rel=0.01)


def test_packed_documents_count_as_sequences_of_their_own():
    net = read_transformer(find("model", "llama3_8b", Path()))
    packed = Training(8, 8192, RECIPES["bf16"], document=1024)
    alone = Training(64, 1024, RECIPES["bf16"])
    assert count_model_flops(net, packed) == count_model_flops(net, alone)
    terms = {
        data: paradl.predict("llama3_8b", "dp8 mb1", 8, 8, dataset=data, system=PLACE["system"])
        for data in ("pile:length=8192", "pile:length=8192,packed=8192", "pile:packed=64")
    }
    whole, same, short = (answer["terms"]["attention"] for answer in terms.values())
    assert whole == same > 20 * short
    place: dict[str, Any] = {"system": PLACE["system"], "settings": {"attention": "unfused"}}
    times = [
        paradl.predict("llama3_8b", "dp8 mb1", 8, 8, dataset=data, **place)
        for data in ("pile", "pile:packed=64")
    ]
    assert times[0]["terms"] == times[1]["terms"]  # a mask hides scores that are computed


def test_no_backward_pass_before_the_first_trained_block():
    """Of all blocks but one frozen, time is that of forward passes; nothing is kept of them."""
    full, last, all_frozen = (
        predict(f"llama3_8b{tuned}", "dp8 mb1") for tuned in ("", ":freeze=31", ":freeze=32")
    )
    assert all_frozen["memory_parts"].get("activations", 0) == 0
    assert last["memory_parts"]["activations"] * 32 == full["memory_parts"]["activations"]
    for term in ("products", "elementwise"):
        block = full["terms"][term] / 32
        share = {"products": 1 / 3, "elementwise": 2 / 5}[term]
        assert all_frozen["terms"][term] == pytest.approx(32 * share * block)
    assert last["terms"]["products"] == pytest.approx((31 / 3 + 1) * full["terms"]["products"] / 32)


def test_hosts_take_states_and_activations():
    usual = predict("llama3_8b", "dp8 mb1 zero1")
    for speed in (1e15, 5e10, 1e9):
        moved = predict(
            "llama3_8b",
            settings={"offload": "both"},
            parameters={"offload_rate": speed},
        )
        assert moved["memory_parts"].get("states", 0) == 0
        kept = usual["memory_parts"]["activations"]
        assert moved["memory_parts"]["activations"] == pytest.approx(kept / 16)  # of 32 blocks
        busy = moved["terms"]["host_transfer"] + moved["terms"]["optimizer"]
        if speed == 1e15:
            assert busy < 1e-3 * moved["epoch_time"]
        slower = busy
    assert slower > moved["terms"]["products"] / 10


def test_gradients_of_adapters_alone_are_exchanged():
    words = "tp1 pp1 dp64 mb1"
    slow = {"system": "dgx-a100:software=plain", "parameters": {"inter_bandwidth": 1e9}}
    full, tuned = (predict(f"llama3_8b{t}", words, 64, **slow) for t in ("", ":lora=4"))
    assert tuned["terms"]["gradient_exchange"] < full["terms"]["gradient_exchange"] / 100
    gathered = [predict(f"llama3_8b{t}", words + " zero3", 64, **slow) for t in ("", ":lora=4")]
    weights = [answer["terms"]["weight_gather"] for answer in gathered]
    assert weights[1] == pytest.approx(weights[0], rel=0.05)  # ZeRO 3 gathers them all


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("llama3_8b:lora=0", {}),
        ("llama3_8b:lora=4,freeze=2", {}),
        ("llama3_8b:weights=nf4", {}),
        ("llama3_8b:lora=4,weights=fp4", {}),
        ("llama3_8b:lora=4,targets=q_proj", {}),
        ("llama3_8b:freeze=33", {}),
        ("llama3_8b:rank=4", {}),
        ("llama3_8b:lora=4", {"strategy": "filter"}),
        ("llama3_8b:lora=4", {"settings": {"oracle": "paper"}, "strategy": "data"}),
        ("gnmt:lora=4", {}),
        ("llama3_8b", {"dataset": "pile:packed=4096"}),
        ("llama3_8b", {"dataset": "imagenet:packed=64"}),
        ("llama3_8b", {"dataset": "pile:packed=64", "strategy": "filter"}),
    ],
)
def test_what_is_not_modelled_is_refused(model, more):
    given = {"strategy": "dp8 mb1", "dataset": "pile", "system": "dgx-h100", **more}
    with pytest.raises(InputError):
        Configuration(model, pe=8, batch=8, **given).grid()


def test_a_store_keeps_what_is_trained():
    words: dict[str, Any] = {"pe": 8, "batch": 8, "dataset": "pile:packed=512"}
    words |= {"system": "dgx-h100"}
    space = SpaceValues("llama3_8b:lora=4,weights=nf4", strategy="fsdp", **words)
    grid = make_grid(space)
    assert Grid.from_definition(grid.definition()).models == grid.models
    assert Grid.from_definition(grid.definition()).datasets == grid.datasets
