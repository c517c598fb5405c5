"""Memory by part: the numbers come to the bytes, and the bytes to the memory."""

import re

import pytest

import paradl
from paradl.grids.reading.errors import InputError

UNIT = re.compile(r"(?<=[\de]) B\b")
MACHINE = {"oracle": "machine"}
RECOMPUTE = {"oracle": "machine", "recompute": "full", "optimizer": "adam"}
PAPER = {"oracle": "paper"}
CASES = [
    *((strategy, MACHINE) for strategy in ("data", "data+spatial", "data+filter", "pipeline")),
    *((strategy, RECOMPUTE) for strategy in ("data", "data+pipeline:group=4,segments=8")),
    *((f"data:zero={stage}", MACHINE) for stage in (1, 2, 3)),
    ("data+pipeline:group=4,segments=8,zero=1,schedule=1f1b", MACHINE),
    ("pipeline:segments=4,schedule=1f1b", RECOMPUTE),
    *((f"data:zero={stage},shard=2", MACHINE) for stage in (1, 3)),
    *((f"data+pipeline:pipeline=2,micro=16,chunks={v},zero=1,shard=2", MACHINE) for v in (1, 2)),
    *((f"data:recompute=layernorm,zero={stage}", MACHINE) for stage in (0, 1)),
    *((strategy, PAPER) for strategy in ("data", "data+spatial", "data+filter", "pipeline")),
]


def evaluate(numbers: str) -> float:
    """What a part's numbers come to [B]."""
    return float(eval(UNIT.sub("", numbers).replace("x", "*"), {"__builtins__": {}}))


@pytest.mark.parametrize(("strategy", "settings"), CASES)
def test_the_numbers_come_to_the_bytes(strategy, settings):
    answer = paradl.explain(
        "alexnet", strategy, 8, 64, dataset="imagenet", settings=settings, system="abci"
    )
    rows = answer["memory_formulas"]
    there = {
        name: size for name, size in answer["memory_parts"].items() if size or settings != PAPER
    }
    assert {row["part"]: row["bytes"] for row in rows} == there  # Table III reserves nothing
    assert sum(evaluate(row["numbers"]) for row in rows) == pytest.approx(answer["memory"])
    for row in rows:
        assert evaluate(row["numbers"]) == pytest.approx(row["bytes"], rel=1e-7)
    assert sum(row["share"] for row in rows) == pytest.approx(1)


def test_replicas_divide_states():
    """7.5 B of a weight's 18, 12 of amp with Adam and 64 PEs: Rajbhandari 2020, figure 1."""
    answer = [
        paradl.predict(
            "vgg16",
            strategy,
            64,
            32,
            dataset="imagenet",
            system="dgx-h100:precision=amp",
            settings={"optimizer": "adam"},
        )
        for strategy in (*(f"data:zero={stage}" for stage in range(4)), "data")
    ]
    plain = answer.pop()
    names = ("weights", "gradients", "states")
    states = [sum(cell["memory_parts"][name] for name in names) for cell in answer]
    assert answer[0]["memory_parts"] == plain["memory_parts"]
    weights = 138_357_544
    per_weight = [16, 4 + 12 / 64, 2 + 14 / 64, 16 / 64]
    assert states == pytest.approx([cell * weights for cell in per_weight])
    gathered = answer[3]["memory_parts"]["gathered"]
    assert gathered == 2 * (25088 * 4096 + 4096 + 4096 * 4096 + 4096)
    # All that a sample takes is as before: what fits is what room is left.
    for cell in answer:
        held = sum(cell["memory_parts"].values())
        assert held == pytest.approx(cell["memory"])
        more = cell["memory"] + cell["memory_parts"]["activations"] / 32 * (
            cell["largest_batch"] - 32
        )
        assert more <= 79.1 * 2**30 < more + cell["memory_parts"]["activations"] / 32


def test_fewer_segments_wait_in_late_stages():
    """By 1F1B at most as many as stages follow: the same time in less memory."""
    plain, early = (
        paradl.predict(
            "vgg16", f"pipeline:segments=16{schedule}", 4, 64, dataset="imagenet", system="abci"
        )
        for schedule in ("", ",schedule=1f1b")
    )
    assert early["epoch_time"] == plain["epoch_time"]
    assert early["memory"] < plain["memory"]


@pytest.mark.parametrize("strategy", ["data:zero=1", "pipeline:schedule=1f1b"])
def test_table_iii_knows_neither(strategy):
    with pytest.raises(InputError, match="strategy"):
        paradl.predict("vgg16", strategy, 4, 32, dataset="imagenet", system="abci", settings=PAPER)


def test_sparse_gradients_are_not_shared():
    with pytest.raises(InputError, match="zero"):
        paradl.predict("big_lstm", "data:zero=1", 8, 64, dataset="one-billion-words", system="abci")


def test_a_copy_in_fp32_is_told():
    answer = paradl.explain(
        "alexnet", "data", 8, 64, dataset="imagenet", system="dgx-h100:precision=amp"
    )
    rows = {row["part"]: row["numbers"] for row in answer["memory_formulas"]}
    assert rows["weights"] == "(2 B + 4 B) x 61100840"
    assert rows["gradients"] == "2 B x 61100840"


def test_activations_peak_at_the_layer_they_name():
    """By hand, of a chain: what layers keep up to it, and the gradients of its input and output."""
    answer = paradl.explain(
        "vgg16", "data", 8, 32, dataset="imagenet", system="abci", settings={"optimizer": "none"}
    )
    row = answer["memory_formulas"][0]
    states = 4 + 4  # bytes of a weight and its gradient
    kept, most = 0.0, {}
    for layer in answer["layers"]:
        once = states * (layer["weights"] + layer["biases"])
        kept += (layer["memory"] - once) / 32
        most[layer["layer"]] = kept + 4 * (layer["x"] + layer["y"])
    name = max(most, key=most.__getitem__)
    assert f"layers up to {name} " in row["formula"]
    assert row["bytes"] == pytest.approx(32 * most[name])


@pytest.mark.parametrize("segments", [1, 4])
def test_placed_operators_fill_the_fullest_device(segments):
    strategy = f"data+placement:group=2,segments={segments}"
    answer = paradl.explain("alexnet", strategy, 4, 16, dataset="imagenet", system="dgx1-v100")
    row = answer["memory_formulas"][0]
    assert row["formula"].endswith("of the fullest device")
    assert evaluate(row["numbers"]) == pytest.approx(row["bytes"], rel=1e-7)
