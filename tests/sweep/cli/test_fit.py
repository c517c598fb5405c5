"""`paradl fit`: every form, what is refused, exit codes."""

import csv
import io
import json

import pytest
from reference_transformers import Layout, Network
from reference_transformers_stage import memory

LLAMA_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B))
    return path


def ask(paradl, *options):
    """The code and the answer."""
    code, out, _ = paradl("fit", *options, "--format", "json")
    return code, json.loads(out, parse_constant=pytest.fail)


def test_memory_is_that_of_the_reference(config, paradl):
    code, answer = ask(paradl, "--model", config, "--pe", 16, "--sequence", 4096)
    assert code == 0
    assert answer["parameters"] == 8_030_261_248
    net = Network(
        *(32, 4096, 32, 14336, 128256, 4096, 8),
        gated=True,
        tied=False,
        biases=False,
        norm="rmsnorm",
    )
    for row in answer["layouts"][::20]:
        layout = Layout(
            **{name: row[name] for name in ("tensor", "context", "pipeline", "chunks", "data")},
            **{name: row[name] for name in ("micro", "zero")},
            schedule="interleaved" if row["chunks"] > 1 else "1f1b",
            batch=1024,
            recompute=frozenset({row["recompute"]} - {"none"}),
            sequence_parallel=row["sequence"],
        )
        assert row["memory"] == pytest.approx(memory(net, layout, reserved=1e9)["total"], rel=1e-9)
        assert row["memory"] == pytest.approx(sum(row["memory_parts"].values()))
        assert row["memory"] <= answer["capacity"] == 80e9


def test_micro_batches_are_the_largest(config, paradl):
    """A layout stands once, and none that would fit twice its micro-batch stands for less."""
    _, answer = ask(paradl, "--model", config, "--pe", 8)
    keys = [
        tuple(sorted((k, str(row[k])) for k in row if k in SETTINGS)) for row in answer["layouts"]
    ]
    assert len(keys) == len(set(keys)) < answer["fitting"] < answer["candidates"]
    # Twice as much leaves the capacity, or the replica's part of the batch, or starves a pipeline.
    for row in answer["layouts"]:
        if row["pipeline"] == 1 and 2 * row["micro"] * row["data"] <= answer["global_batch"]:
            flying = sum(row["memory_parts"][part] for part in PER_SEQUENCE)
            assert row["memory"] + flying > answer["capacity"]


PER_SEQUENCE = ("activations", "recomputed", "embedding", "logits")
SETTINGS = {
    *("tensor", "context", "expert", "pipeline", "chunks", "data", "zero", "recompute", "sequence"),
}


def test_losers_say_what_would_let_them_fit(config, paradl):
    _, answer = ask(paradl, "--model", config, "--pe", 24)
    losers = {row["reason"]: row for row in answer["losers"]}
    assert answer["global_batch"] == 24 * 43
    assert losers["heads"]["remedy"] == "a tensor degree that divides 32 heads"
    assert losers["memory"]["alone"] == losers["memory"]["layouts"] > 0
    assert "a smaller micro-batch (" in losers["memory"]["remedy"]
    assert [row["layouts"] for row in answer["losers"]] == sorted(
        (row["layouts"] for row in answer["losers"]), reverse=True
    )


def test_as_a_table(config, paradl):
    code, out, err = paradl("fit", "--model", config, "--pe", 8)
    assert code == 0
    assert "8.03 billion parameters, on 8 PEs of dgx-h100, 80 GB each" in out
    assert "candidates fit; no time is predicted" in out
    assert "tp2 pp1 dp4 mb" in out
    assert "more: --all" in err


def test_as_csv(config, paradl):
    code, out, _ = paradl("fit", "--model", config, "--pe", 8, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert float(rows[0]["memory_parts.weights"]) > 0


def test_nothing_fits(paradl):
    code, out, err = paradl("fit", "--model", "llama3_405b", "--pe", 8)
    assert code == 4
    assert "least memory: " in out
    assert "more PEs, or PEs of at least " in out
    assert "nothing feasible" in err


def test_experts_are_divided(paradl):
    _, answer = ask(paradl, "--model", "mixtral_8x7b", "--pe", 32)
    assert {row["expert"] for row in answer["layouts"]} == {1, 2, 4, 8}
    assert any(row["layout"].startswith("tp1 ep8 pp") for row in answer["layouts"])


def test_scores_that_are_kept(paradl):
    _, answer = ask(paradl, "--model", "gpt3_175b", "--pe", 512, "--attention", "unfused")
    assert any("recompute=core_attn" in row["layout"] for row in answer["layouts"])


def test_schedules_differ_in_flight(config, paradl):
    """GPipe keeps all micro-batches, 1F1B as many as there are stages."""
    options = ("--model", config, "--pe", 8, "--global-batch", 64)
    counts = {
        name: ask(paradl, *options, "--schedule", name)[1] for name in ("1f1b", "gpipe", "zbv")
    }
    piped = {
        name: sum(row["pipeline"] > 1 and row["chunks"] == 1 for row in answer["layouts"])
        for name, answer in counts.items()
    }
    assert piped["gpipe"] < piped["1f1b"]
    assert {row["chunks"] for row in counts["zbv"]["layouts"]} == {1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "resnet50", "--pe", 8), "none of the families gpt, llama, moe"),
        (("--model", "llama2_7b", "--pe", 0), "pe: expected 1 to 1,024, got 0"),
        (("--model", "llama2_7b", "--pe", 8, "--global-batch", 0), "--global-batch: expected 1 to"),
        (("--model", "llama2_7b", "--pe", 8, "--sequence", -1), "sequence: expected 1 to"),
    ],
)
def test_refused(options, words, paradl):
    code, out, err = paradl("fit", *options)
    assert (code, out) == (2, "")
    assert words in err
