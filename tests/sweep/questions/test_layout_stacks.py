"""Layouts by software: winners that its launch lines take, its loss, and memory that is tight."""

import json
from typing import Any

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from open_answers import explain_grid, rank_strategies

from paradl.grids.design_space import Configuration, SpaceValues, make_grid
from paradl.grids.entries.reserves import RESERVES
from paradl.grids.reading.errors import InputError
from paradl.sweep.questions.predict import predict

NAMED = {"megatron": "megatron", "fsdp": "torchtitan", "deepspeed": "deepspeed"}
STACKS = (*NAMED.values(), "torchrun")
BATCH = 1024


def rank(model: object, pe: int, system: str = "dgx-h100", most: int = 20, **options: Any) -> Any:
    options = {"global_batch": BATCH, **options}
    space = SpaceValues(str(model), pe, system=system, **options)
    return rank_strategies(make_grid(space), layouts=most, intervals=False)


def explain(
    model: object, pe: int, layout: str, launch: str | None = None, **options: Any
) -> dict[str, Any]:
    options = {"system": "dgx-h100", "global_batch": BATCH, **options}
    return explain_grid(Configuration(str(model), layout, pe, **options).grid(), launch)


def launches(model: object, pe: int, layout: str, stack: str, **options: Any) -> bool:
    """Whether a stack's launch lines take a layout."""
    try:
        answer = explain(model, pe, layout, stack, **options)
    except InputError:
        return False
    return bool(answer["launch_files"])


@pytest.mark.parametrize("software", NAMED)
@pytest.mark.parametrize(
    ("model", "pe"), [("gpt3_175b", 1024), ("llama3_405b", 1024), ("llama2_70b", 96)]
)
def test_winners_start(model, pe, software):
    if (model, software) == ("llama3_405b", "deepspeed"):
        pytest.skip("Megatron-DeepSpeed has no flag for the scaling of its rotary positions")
    options = {"system": f"dgx-h100:software={software}", "global_batch": 4 * pe}
    first, *_ = rank(model, pe, **options)
    assert launches(model, pe, first["layout"], NAMED[software], **options)


def test_winners_whose_network_has_no_flags():
    """Flags of latent attention are not known, but Megatron-LM runs the layout."""
    first, *_ = rank("deepseek_v3", 256, "dgx-h100:software=megatron")
    assert "unsupported" not in first["limit"]
    assert "pp1 " in first["layout"] or "zero2" not in first["layout"]


@given(
    heads=st.sampled_from([8, 20, 32, 64, 96]),
    shared=st.sampled_from([1, 4]),
    layers=st.sampled_from([12, 24, 61, 80, 126]),
    experts=st.sampled_from([0, 8]),
    pe=st.sampled_from([8, 24, 64, 256]),
    length=st.sampled_from([1024, 8192]),
)
@limit_examples(5)
def test_winners_of_random_networks_start(
    tmp_path_factory, heads, shared, layers, experts, pe, length
):
    sizes = {
        "model_type": "mixtral" if experts else "llama",
        "hidden_size": 128 * heads,
        "intermediate_size": 384 * heads,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // shared,
        "num_hidden_layers": layers,
        "vocab_size": 32000,
    }
    more = {"num_local_experts": experts, "num_experts_per_tok": 2} if experts else {}
    path = tmp_path_factory.mktemp("network") / "config.json"
    path.write_text(json.dumps(sizes | more))
    for software, stack in NAMED.items():
        if experts and software == "deepspeed":
            continue  # whose flags of gated experts are not known
        options = {"sequence": length, "global_batch": 8 * pe}
        options["system"] = f"dgx-h100:software={software}"
        rows = [row for row in rank(path, pe, most=4, **options) if row["feasible"]]
        last = ["unsupported" in row["limit"] for row in rows]
        assert last == sorted(last)
        if rows and not last[0]:
            assert launches(path, pe, rows[0]["layout"], stack, **options)


@pytest.mark.parametrize("strategy", [None, "layouts:schedule=zb1p"])
def test_rows_say_what_runs_them(strategy):
    """As launch lines are taken or refused."""
    rows = rank("llama2_7b", 16, most=80, strategy=strategy)
    for row in rows[::16]:
        stated = [stack for stack in STACKS if launches("llama2_7b", 16, row["strategy"], stack)]
        assert row["runs_with"] == stated
    assert len({tuple(row["runs_with"]) for row in rows}) > 2 - bool(strategy)
    assert all("unsupported" not in row["limit"] for row in rows)


@pytest.mark.parametrize("free", [0, 0.05])
def test_little_memory_to_spare_is_remarked(free):
    """Where the card is rather too small than not, whatever headroom is asked for."""
    rows = rank("llama2_7b", 8, most=60, parameters={"headroom": free})
    whole = predict("llama2_7b", "tp8", 8, 1, system="dgx-h100", dataset="pile")
    shares = [row["memory"] / whole["parameters"]["memory_capacity"] for row in rows]
    median = RESERVES["unknown"].median
    for row, share in zip(rows, shares, strict=True):
        assert (share > 1 / median) == (row["fits"] < 0.5) == ("tight" in row["remarks"])
    assert 0.9 < max(shares) <= 1 - free


def test_headroom_is_a_share():
    """What it forbids has its time, as with more memory."""
    layout = "tp2 pp1 dp4 mb1 sp"
    plain = explain("llama2_7b", 8, layout)
    left = 1 - plain["memory"] / plain["parameters"]["memory_capacity"]
    for share, fits in ((0.999 * left, True), (1.001 * left, False)):
        answer = explain("llama2_7b", 8, layout, parameters={"headroom": share})
        assert answer["feasible"] == fits
        assert (answer["memory"], answer["epoch_time"]) == (plain["memory"], plain["epoch_time"])


@pytest.mark.parametrize("free", ["x", 1, -0.1, "10", "nan", "10 GB"])
def test_headroom_that_is_no_share_is_refused(free):
    with pytest.raises(InputError, match="headroom"):
        rank("llama2_7b", 8, parameters={"headroom": free})


@pytest.mark.parametrize(
    ("software", "precision", "loss"),
    [
        *(("fsdp", "bf16", "plain"), ("deepspeed", "fp32", "plain")),
        *(("megatron", "fp32", "whole"), ("ddp", "bf16", "whole")),
    ],
)
def test_the_loss_is_that_of_the_software(software, precision, loss):
    """PyTorch's, with 14 bytes per logit (12 in fp32), unless stated."""
    options = {"system": f"dgx-h100:software={software}", "precision": precision}
    sizes = [
        explain("llama2_7b", 8, "tp1 dp8 mb1 zero3", global_batch=8, settings=given, **options)
        for given in ({}, {"loss": loss}, {"loss": "fused"})
    ]
    assert sizes[0]["memory"] == sizes[1]["memory"] > sizes[2]["memory"]


def test_a_higher_stage_of_zero_needs_room_for_its_temporaries():
    """Changes leave it out where it would fit but for the gradients of a block: 0.81 GB."""
    higher = "tp1 pp1 dp8 mb1 zero2"
    whole = explain("llama2_7b", 8, higher)
    needed = whole["memory"]
    assert whole["memory_parts"]["unreduced"] == 4 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096)
    for capacity, helps in ((0.999 * needed, False), (1.001 * needed, True)):
        free = 1 - capacity / whole["parameters"]["memory_capacity"]
        answer = explain("llama2_7b", 8, "tp1 pp1 dp8 mb1", parameters={"headroom": free})
        assert not answer["feasible"]
        assert (higher in [change["layout"] for change in answer["changes"]]) == helps


@pytest.mark.parametrize("software", NAMED)
def test_best_settings_start(software):
    """Also where another layout would be faster."""
    strategy = (
        "data+tensor+pipeline:tensor=best,pipeline=best,micro=best,recompute=best,sequence=best,"
        "zero=best"
    )
    answer = predict(
        *("gpt3_175b", strategy, 256, 512),
        system=f"dgx-a100-80gb:software={software},precision=bf16",
        dataset="pile",
        settings={"scaling": "strong"},
    )
    options = {"system": f"dgx-a100-80gb:software={software}", "global_batch": 512}
    assert launches("gpt3_175b", 256, answer["layout"], NAMED[software], **options)


@pytest.mark.parametrize(
    ("software", "stated", "winner"),
    [
        ("megatron", "data+pipeline:pipeline=4,zero={},micro=1", 1),
        ("deepspeed", "data+pipeline:pipeline=4,zero={},micro=1", 1),
        ("fsdp", "data:zero={},micro=1", 2),
    ],
)
def test_a_strategy_that_the_software_does_not_run_ranks_last_and_is_marked(
    software, stated, winner
):
    strategies = [stated.format(stage) for stage in (1, 2)]
    space = SpaceValues(
        *("llama2_7b", 32, 8, "pile"),
        system=f"dgx-h100:precision=bf16,software={software}",
        strategy=strategies,
    )
    first, last = rank_strategies(make_grid(space))
    assert f"zero={winner}" in first["strategy"]
    assert ("unsupported" in first["limit"], last["limit"]) == (False, ["unsupported"])


@pytest.mark.parametrize("layout", ["tp8 cp2 dp2 mb1", "tp4 dp8 mb1 zero2", "tp8 dp4 mb1 zero1"])
def test_software_of_2021_has_neither_context_ranks_nor_sharded_weights(layout):
    system = "dgx-a100-80gb:software=megatron-2021"
    answer = explain("llama2_70b", 32, layout, system=system)
    assert ("unsupported" in answer["limit"]) == (layout[-5:] != "zero1")
    winner = rank("llama2_70b", 64, system)[0]["layout"]
    assert not any(word in winner for word in ("cp", "zero2", "zero3"))


def test_what_a_strategy_states_is_taken_although_the_software_does_not_run_it():
    """torchtitan has no ZeRO 1; a layout without replicas, which needs none, is no answer."""
    grid = make_grid(
        SpaceValues(
            *("llama3_70b", 64, 8, "pile"),
            system="dgx-h100:precision=bf16,software=fsdp",
            strategy="megatron",
        )
    )
    (row,) = rank_strategies(grid)
    assert row["replicas"] > 1
    assert row["limit"] == ["unsupported"]
    answer = predict(
        *("llama3_70b", row["strategy"], 64, 8),
        dataset="pile",
        system="dgx-h100:precision=bf16,software=fsdp",
    )
    assert (answer["layout"], answer["limit"]) == (row["layout"], ["unsupported"])
