"""Layouts by software: winners that its launch lines take, its loss, and memory that is tight."""

import json
from typing import Any

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from paradl.sweep.questions.fit import fit
from paradl.sweep.questions.layout_scaling import list_fastest

from paradl.grids.reading.errors import InputError
from paradl.sweep.cells.design_space import SpaceValues, make_grid
from paradl.sweep.questions.best import rank_strategies
from paradl.sweep.questions.predict import predict

NAMED = {"megatron": "megatron", "fsdp": "torchtitan", "deepspeed": "deepspeed"}
STACKS = (*NAMED.values(), "torchrun")


def rank(model: object, pe: int, software: str | None = None, **options: Any) -> Any:
    system = options.pop("system", "dgx-h100") + (f":software={software}" if software else "")
    return fit(str(model), pe, **{"system": system, "by": "time", "most": 20, **options})


def launches(answer: Any, row: Any, stack: str, **options: Any) -> bool:
    """Whether a stack's launch lines take the layout of a row."""
    options |= {"system": answer["system"], "global_batch": answer["global_batch"]}
    try:
        answer = fit(answer["model"], answer["pe"], layout=row["layout"], launch=stack, **options)
    except InputError:
        return False
    return bool(answer["launch"])


@pytest.mark.parametrize("software", NAMED)
@pytest.mark.parametrize(
    ("model", "pe"), [("gpt3_175b", 1024), ("llama3_405b", 1024), ("llama2_70b", 96)]
)
def test_winners_start(model, pe, software):
    answer = rank(model, pe, software)
    assert launches(answer, answer["layouts"][0], NAMED[software])


def test_winners_whose_network_has_no_flags():
    """Flags of latent attention are not known, but Megatron-LM runs the layout."""
    first, *_ = rank("deepseek_v3", 256, "megatron")["layouts"]
    assert "unsupported" not in first["remarks"]
    assert first["pipeline"] == 1 or first["zero"] < 2


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
        options = {"length": length, "global_batch": 8 * pe}
        answer = rank(path, pe, software, **options)
        remarks = [row["remarks"] for row in answer["layouts"]]
        last = ["unsupported" in of_row for of_row in remarks]
        assert last == sorted(last)
        if answer["layouts"] and not last[0]:
            answer["model"] = str(path)
            assert launches(answer, answer["layouts"][0], stack, length=length)


@pytest.mark.parametrize("options", [{}, {"shard": "node"}, {"schedule": "zb1p"}])
def test_rows_say_what_runs_them(options):
    """As launch lines are taken or refused."""
    answer = rank("llama2_7b", 16, most=300, recompute=["none", "mlp", "blocks"], **options)
    named = {key: value for key, value in options.items() if key == "schedule"}
    rows = answer["layouts"][::50]
    for row in rows:
        stated = [stack for stack in STACKS if launches(answer, row, stack, **named)]
        assert row["runs_with"] == stated
    assert len({tuple(row["runs_with"]) for row in rows}) > 2
    assert all("unsupported" not in row["remarks"] for row in answer["layouts"])


def test_fastest_layouts_run():
    """Of several numbers of PEs; where the software runs none, the reason says so."""
    found = list_fastest("llama2_70b", "dgx-h100:software=megatron", (16, 64), front=True)
    for row, layout in found:
        assert layout is None or "megatron" in layout["runs_with"]
        assert (row["reason"] == "unsupported") == (layout is None)
    # One sequence leaves no replicas, and 96 heads no tensor degree of 64.
    options: Any = {"schedule": "zb1p", "global_batch": 1}
    found = list_fastest("gpt3_175b", "dgx-h100:software=deepspeed", (64,), **options)
    assert [row["reason"] for row, _ in found] == ["unsupported"]


@pytest.mark.parametrize("by", ["time", "division"])
def test_little_memory_to_spare_is_remarked(by):
    """From 90 % of the card on, whatever is kept free, and without a change in the order."""
    answers = [rank("llama2_7b", 8, by=by, most=None, headroom=free) for free in (None, "5%")]
    for answer, most in zip(answers, (1, 0.95), strict=True):
        shares = [row["capacity_used"] for row in answer["layouts"]]
        assert [share >= 0.9 for share in shares] == [
            "tight" in row["remarks"] for row in answer["layouts"]
        ]
        assert 0.9 < max(shares) <= most
        used = [row["memory"] / answer["capacity"] for row in answer["layouts"]]
        assert shares == used
    if by == "time":
        seconds = [row["time"]["iteration_time"] for row in answers[0]["layouts"]]
        assert seconds == sorted(seconds)


def test_headroom_is_a_share():
    layout = "tp2 pp1 dp4 mb1 sp"
    plain = rank("llama2_7b", 8, layout=layout)
    (row,) = plain["layouts"]
    left = 1 - row["capacity_used"]
    assert (plain["headroom"], row["fits"]) == (0, True)
    for share, fits in ((0.999 * left, True), (1.001 * left, False)):
        answer = rank("llama2_7b", 8, layout=layout, headroom=share)
        assert answer["feasible"] == answer["smallest"]["fits"] == fits
        assert answer["smallest"]["capacity_used"] == row["capacity_used"]
    for free in ("10%", 0.1, " 10 % "):
        assert rank("llama2_7b", 8, layout=layout, headroom=free)["headroom"] == 0.1


@pytest.mark.parametrize("free", ["x", "100%", 1, -0.1, "10", "nan", "10 GB"])
def test_headroom_that_is_no_share_is_refused(free):
    with pytest.raises(InputError, match="headroom"):
        rank("llama2_7b", 8, headroom=free)


def test_what_does_not_fit_has_its_time(cli):
    """As with more memory."""
    layout = {"layout": "tp1 pp1 dp8 mb2 zero1"}
    (whole,) = rank("llama2_7b", 8, system="dgx-b200", **layout)["layouts"]
    answer = rank("llama2_7b", 8, system="dgx-b200", **layout, headroom=0.9)
    row = answer["smallest"]
    assert (answer["layouts"], row["fits"], answer["feasible"]) == ([], False, False)
    assert row["time"] == whole["time"]
    for options in (("--layout", layout["layout"]), ("--recompute", "none")):
        given = ("--model", "gpt3_175b", "--pe", 8, "--by", "time", *options)
        code, out, _ = cli("fit", *given)
        assert code == 4
        assert "does not fit" in out
        assert "s per iteration" in out


@pytest.mark.parametrize(
    ("software", "precision"),
    [("fsdp", "bf16"), ("deepspeed", "fp32"), ("megatron", "fp32"), ("ddp", "bf16")],
)
def test_the_loss_is_that_of_the_software(software, precision):
    """PyTorch's, with 14 bytes per logit (12 in fp32), unless stated; so in strategies."""
    losses = {"fsdp": "plain", "deepspeed": "plain"}
    options = {"layout": "tp1 pp1 dp8 mb1 zero3", "global_batch": 8, "precision": precision}
    answer = rank("llama2_7b", 8, software, **options)
    stated = rank("llama2_7b", 8, software, loss=answer["loss"], **options)["smallest"]
    assert answer["loss"] == losses.get(software, "whole")
    assert answer["smallest"]["memory"] == stated["memory"]
    predicted = predict(
        *("llama2_7b", "data:zero=3,micro=1", 8, 1),
        system=f"dgx-h100:software={software},precision={precision}",
        dataset="pile",
    )
    assert predicted["memory"] == stated["memory"]


def test_a_higher_stage_of_zero_needs_room_for_its_temporaries():
    """Changes leave it out where it would fit but for the gradients of a block: 0.81 GB."""
    higher = "tp1 pp1 dp8 mb1 zero2"
    whole = rank("llama2_7b", 8, layout=higher)
    needed = whole["smallest"]["memory"] + 4 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096)
    for capacity, helps in ((0.999 * needed, False), (1.001 * needed, True)):
        free = 1 - capacity / whole["capacity"]
        answer = rank("llama2_7b", 8, layout="tp1 pp1 dp8 mb1", headroom=free)
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
    row = {"layout": answer["layout"]}
    asked = {**answer, "system": f"dgx-a100-80gb:software={software}"}
    assert launches(asked, row, NAMED[software])


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
