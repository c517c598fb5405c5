"""`paradl fit`: every form, what is refused, exit codes."""

import csv
import io
import json
import re
from typing import Any

import pytest
from reference_transformers import Layout, Network
from reference_transformers_stage import memory

from paradl.sweep.questions.fit import fit

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


def ask(cli, *options):
    """The code and the answer."""
    code, out, _ = cli("fit", *options, "--format", "json")
    return code, json.loads(out, parse_constant=pytest.fail)


def test_micro_batches_are_the_largest(config, cli):
    """A layout stands once, and none that would fit twice its micro-batch stands for less."""
    _, answer = ask(cli, "--model", config, "--pe", 8)
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


def test_losers_say_what_would_let_them_fit(config, cli):
    _, answer = ask(cli, "--model", config, "--pe", 24)
    losers = {row["reason"]: row for row in answer["losers"]}
    assert answer["global_batch"] == 24 * 43
    assert losers["heads"]["remedy"] == "a tensor degree that divides 32 heads"
    assert losers["memory"]["alone"] == losers["memory"]["layouts"] > 0
    assert re.search(r"more pipeline \(\d+\)", losers["memory"]["remedy"])
    assert [row["layouts"] for row in answer["losers"]] == sorted(
        (row["layouts"] for row in answer["losers"]), reverse=True
    )


def test_as_a_table(config, cli):
    code, out, err = cli("fit", "--model", config, "--pe", 8)
    assert code == 0
    assert "8.03 billion parameters, on 8 PEs of dgx-h100, 84.93 GB each" in out
    assert "candidates" in out
    assert "tp2 pp1 dp4 mb" in out
    assert "more: --all" in err


def test_as_csv(config, cli):
    code, out, _ = cli("fit", "--model", config, "--pe", 8, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert float(rows[0]["memory_parts.weights"]) > 0


def test_nothing_fits(cli):
    code, out, err = cli("fit", "--model", "llama3_405b", "--pe", 8)
    assert code == 4
    assert "least memory: " in out
    assert "more PEs, or PEs of at least " in out
    assert "nothing feasible" in err


@pytest.mark.parametrize("by", ["division", "time"])
@pytest.mark.parametrize(
    ("system", "precision", "known"),
    [
        ("dgx1-v100", "bf16", "fp16 or fp32"),
        ("dgx2-v100:memory=1 TB", "bf16", "fp16 or fp32"),
        ("dgx-a100", "fp8", "bf16 or fp16 or fp32"),
        ("gaudi2", "fp16", "bf16 or fp32 or fp8"),
        ("dgx-h100", "nvfp4", "bf16 or fp16 or fp32 or fp8"),
    ],
)
def test_a_precision_without_a_peak_is_refused(cli, by, system, precision, known):
    code, out, err = cli(
        *("fit", "--model", "llama3_8b", "--system", system, "--pe", 8, "--by", by),
        *("--precision", precision),
    )
    assert (code, out) == (2, "")
    assert err.startswith("paradl: --precision: ")
    assert f"take {known}\n" in err


@pytest.mark.parametrize(
    ("system", "usual"),
    [("dgx1-v100", "fp16"), ("dgx-a100", "bf16"), ("gaudi2", "bf16"), ("dgx-h100", "bf16")],
)
def test_the_usual_precision_is_one_of_the_device(cli, system, usual):
    _, answer = ask(cli, "--model", "gpt3_175b", "--system", system, "--pe", 8)
    assert answer["precision"] == usual


def test_one_layout_by_part(config, cli):
    """Each part is the product that is printed, and all of them the reference's memory."""
    words = "tp4 pp2 dp2 mb2 zero1 sp recompute=mlp,layernorm"
    options = ("--model", config, "--pe", 16, "--attention", "unfused", "--loss", "chunked")
    code, answer = ask(cli, *options, "--layout", words)
    net = Network(
        *(32, 4096, 32, 14336, 128256, 2048, 8),
        gated=True,
        tied=False,
        biases=False,
        norm="rmsnorm",
    )
    layout = Layout(
        tensor=4,
        pipeline=2,
        data=2,
        micro=2,
        zero=1,
        batch=1024,
        sequence_parallel=True,
        recompute=frozenset({"mlp", "layernorm"}),
        fused_attention=False,
        loss_parts=8,
    )
    hand = memory(net, layout, reserved=1e9)
    assert answer["parameters"] == 8_030_261_248
    total = sum(row["memory"] for row in answer["parts"])
    assert total == answer["smallest"]["memory"] == pytest.approx(hand["total"], rel=1e-9)
    for row in answer["parts"]:
        product = eval(row["numbers"].replace(",", "").replace("x", "*"))  # of our own numbers
        assert product == pytest.approx(row["memory"], rel=1e-6), row["part"]
    assert (code, answer["candidates"]) == (0, 1)
    assert answer["smallest"]["layout"] == words
    assert {row["micro"] for row in answer["changes"]} <= {4, 8, 16}


def test_a_layout_that_does_not_fit(cli):
    """What is near it fits, of what one change makes alone."""
    options = ("--model", "llama2_70b", "--pe", 64)
    code, answer = ask(cli, *options, "--layout", "tp8 pp4 mb16 zero1")
    assert (code, answer["layouts"], answer["smallest"]["data"]) == (4, [], 2)
    assert {"tp8 pp4 dp2 mb2 zero1", "tp8 pp4 dp2 mb16 zero1 recompute=blocks"} <= {
        row["layout"] for row in answer["changes"]
    }
    for row in answer["changes"]:
        again = ask(cli, *options, "--layout", row["layout"])[1]
        assert again["smallest"]["memory"] == row["memory"] <= answer["capacity"]
    code, out, _ = cli("fit", *options, "--layout", "tp8 pp4 mb16 zero1")
    assert code == 4
    assert "does not fit" in out


def test_options_that_take_less_memory(config, cli):
    """Of one layout each: sharding over a node takes more than over all."""
    base = ("--model", config, "--pe", 32)

    def measure(layout, *options):
        _, answer = ask(cli, *base, "--layout", layout, *options)
        return answer["smallest"]["memory_parts"]

    whole, node = (measure(f"tp1 dp32 mb1 zero1{shard}") for shard in ("", " shard8"))
    assert node["states"] == pytest.approx(4 * whole["states"])
    logits = [measure("tp1", "--loss", loss)["logits"] for loss in ("whole", "chunked", "fused")]
    scores = 4 * 2048 * 128256  # a multiple of 128
    assert logits[0] - logits[1] == pytest.approx(scores * 7 / 8)
    assert logits[1] - logits[2] == pytest.approx(scores / 8)
    # bf16 logits, their copy in fp32, log_softmax's result and its gradient; fp32 needs no copy.
    for precision, of_each in (("bf16", 2 + 4 + 4 + 4), ("fp32", 4 + 4 + 4)):
        plain, whole = (
            measure("tp1", "--precision", precision, "--loss", loss)["logits"]
            for loss in ("plain", "whole")
        )
        assert plain - whole == pytest.approx(scores / 4 * (of_each - 4))


def test_sets_of_modules_and_nodes(config, cli):
    """As options they hold for all candidates."""
    options = ("--recompute", "mlp,layernorm", "--recompute", "none", "--shard", "node")
    _, answer = ask(cli, "--model", config, "--pe", 32, *options)
    assert {row["recompute"] for row in answer["layouts"]} == {"none", "mlp,layernorm"}
    assert {row["shard"] for row in answer["layouts"] if row["zero"] and row["tensor"] == 2} <= {
        *(2, 4),
    }


def test_longer_than_it_was_trained_for(config, cli):
    config.write_text(json.dumps(LLAMA_8B | {"max_position_embeddings": 4096}))
    for length, remarks in ((4096, []), (8192, ["longer"])):
        options = ("--sequence", length, "--layout", "tp8 dp1")
        _, answer = ask(cli, "--model", config, "--pe", 8, *options)
        assert answer["smallest"]["remarks"] == remarks


def test_images_have_one_length(cli):
    code, answer = ask(cli, "--model", "vit_l_16", "--pe", 8)
    assert (code, answer["length"]) == (0, 14 * 14 + 1)


def test_layouts_ranked_by_time(cli):
    """The fastest ahead, each once, with what follows from its time."""
    options = ("--model", "llama2_7b", "--pe", 16, "--global-batch", 256)
    _, answer = ask(cli, *options, "--by", "time")
    times = [row["time"] for row in answer["layouts"]]
    seconds = [time["iteration_time"] for time in times]
    assert seconds == sorted(seconds)
    for time in times:
        assert sum(time["terms"].values()) == pytest.approx(time["iteration_time"])
        assert time["iteration_time_p10"] < time["iteration_time"] < time["iteration_time_p90"]
        assert time["tokens_per_second"] * time["iteration_time"] == pytest.approx(256 * 2048)
        assert 0 < time["mfu"] < 1
        assert all(total >= time["terms"][name] for name, total in time["exchanges"].items())
        assert time["bubble_share"] == time["terms"]["pipeline_bubble"] / time["iteration_time"]
    without = ask(cli, *options)[1]["layouts"]
    assert {row["time"] for row in without} == {None}


def test_a_layouts_time_in_words(cli):
    layout = ("--layout", "tp8 pp4 dp2 mb1 zero1")
    code, out, _ = cli("fit", "--model", "llama2_70b", "--pe", 64, "--by", "time", *layout)
    assert code == 0
    assert "MFU" in out
    assert "stage_exchange" in out  # too little for a share; of all communication not


def test_intervals_are_wider_where_less_is_known(cli):
    """Mixtures of experts, narrow products, devices and software of few runs or none."""

    def measure(model="llama3_8b", system="dgx-h100:software=megatron", precision="bf16"):
        options = ("--model", model, "--pe", 64, "--system", system, "--precision", precision)
        code, answer = ask(cli, "--by", "time", *options, "--layout", "tp8 mb1 zero1")
        assert code == 0
        assert ("no run on mi300x" in answer["times"]) == ("mi300x" in system)
        time = answer["smallest"]["time"]
        return time["iteration_time_p90"] / time["iteration_time"]

    known = measure()
    b200, mi300x = (measure(system=f"{name}:software=megatron") for name in ("dgx-b200", "mi300x"))
    assert known < b200 < mi300x
    assert known < measure(precision="fp8")
    assert known < measure("mixtral_8x7b")
    assert known < measure(system="dgx-h100")
    mxfp8, nvfp4 = (
        measure(system="dgx-b200:software=megatron", precision=precision)
        for precision in ("mxfp8", "nvfp4")
    )
    assert b200 <= mxfp8 <= nvfp4


TIMED = ("--model", "llama2_7b", "--pe", 16, "--system", "dgx-h100")


def test_best_ranks_layouts_by_time(cli):
    """As `fit --by time` does; with tokens, what they take and cost."""
    options = (*TIMED, "--sequence", 4096, "--global-batch", 512, "--tokens", 1e12, "--price", 2)
    code, out, err = cli("best", *options, "--format", "json")
    assert code == 0, err
    answer = json.loads(out)
    _, fitted, _ = cli("fit", *options, "--by", "time", "--format", "json")
    assert answer == json.loads(fitted)
    rows = [row["time"] for row in answer["layouts"]]
    times = [row["iteration_time"] for row in rows]
    assert times == sorted(times)
    assert 0.5 <= answer["faster_than_next"] <= 1
    first = rows[0]
    assert first["train_time"] == pytest.approx(times[0] * 1e12 / (512 * 4096))
    assert first["pe_hours"] == pytest.approx(first["train_time"] * 16 / 3600)
    assert first["cost"] == pytest.approx(2 * first["pe_hours"])
    assert first["tokens_per_pe_second"] == pytest.approx(512 * 4096 / times[0] / 16)


def test_computing_again_counts_in_hfu_alone(cli):
    """SC21, equation 3: whole blocks again are a third more, but for the logits."""
    options = (*TIMED, "--by", "time", "--format", "json", "--sequence", 4096)
    _, plain, _ = cli("fit", *options, "--layout", "tp8 pp1 dp2 mb1 zero1")
    _, again, _ = cli("fit", *options, "--layout", "tp8 pp1 dp2 mb1 zero1 recompute=blocks")
    plain, again = (json.loads(out)["smallest"]["time"] for out in (plain, again))
    assert plain["hfu"] == plain["mfu"]
    blocks = 32 * (2 * (4 * 4096**2 + 3 * 4096 * 11008) + 4 * 4096 * 4096)
    logits = 2 * 4096 * 32000
    share = 1 + blocks / (3 * (blocks + logits))
    assert again["hfu"] / again["mfu"] == pytest.approx(share)


PROVISIONED = ("--model", "llama2_7b", "--sequence", 4096, "--global-batch", 512)


def test_provision_doubles_pes_until_a_layout_meets_the_deadline(cli):
    options = (*PROVISIONED, "--system", "dgx-h100", "--tokens", 1e11, "--price", 2)
    code, out, err = cli("provision", *options, "--deadline", "10 d", "--format", "json")
    assert code == 0, err
    rows = json.loads(out)
    assert [row["pe"] for row in rows] == [1 << bit for bit in range(len(rows))]
    assert [row["meets"] for row in rows] == [False] * (len(rows) - 1) + [True]
    last = rows[-1]
    assert last["train_time"] <= 10 * 86400 < rows[-2]["train_time"]
    assert 0.5 <= last["holds"] <= 1
    _, out, _ = cli("best", *options, "--pe", last["pe"], "--format", "json")
    first = json.loads(out)["layouts"][0]
    assert first["layout"] == last["layout"]
    time = first["time"]
    assert time["cost"] == last["cost"]
    late = last["train_time"] * time["iteration_time_p90"] / time["iteration_time"]
    _, out, _ = cli("provision", *options, "--deadline", f"{late} s", "--format", "json")
    (again,) = (row for row in json.loads(out) if row["pe"] == last["pe"])
    assert again["holds"] == pytest.approx(0.9, abs=1e-5)


def test_numbers_of_layouts_are_read_as_people_write_them(cli):
    said = ("--pe", "1k", "--sequence", "8k", "--tokens", "15T", "--headroom", "10%")
    plain = ("--pe", 1024, "--sequence", 8192, "--tokens", 15e12, "--headroom", 0.1)
    ask = ("fit", "--model", "llama2_7b", "--by", "time", "--format", "json")
    code, out, err = cli(*ask, *said)
    assert code == 0, err
    assert out == cli(*ask, *plain)[1]
    answer = fit("llama2_7b", "1k", length="8k", tokens="15T", headroom="10%", by="time")
    assert answer["layouts"] == json.loads(out)["layouts"]


def test_provision_of_layouts_that_are_too_slow(cli):
    options = ("--model", "llama2_7b", "--sequence", 4096, "--system", "dgx-h100")
    code, out, err = cli("provision", *options, "--tokens", 1e17, "--deadline", "1 d")
    assert code == 4, err
    assert "tp" in out


def test_limits_of_layouts(cli):
    """Efficiency is that of tokens a PE; at the edges a batch has too few sequences."""
    options = (*PROVISIONED[:4], "--global-batch", 64, "--system", "dgx-h100")
    code, out, err = cli("limits", *options, "--efficiency", 0.8, "--format", "json")
    assert code == 0, err
    rows = json.loads(out)
    assert [row["pe"] for row in rows] == [1 << bit for bit in range(11)]
    rates = [row["tokens_per_pe_second"] or 0 for row in rows]
    for number, row in enumerate(rows):
        if row["layout"] is None:
            assert row["reason"] == "memory"
        else:
            reached = rates[number] / max(rates[: number + 1])
            assert row["efficiency"] == pytest.approx(reached)
            assert row["efficient"] == (reached >= 0.8)
    assert not rows[-1]["efficient"]
    assert rows[-1]["binds"] not in ("products", "attention")


@pytest.fixture(scope="module")
def ranked():
    """All layouts on two numbers of PEs: what `best` ranks, as a test above holds."""
    options: Any = {"system": "dgx-h100", "global_batch": 512, "length": 4096}
    return [
        {"pe": pe, **row, **(row["time"] or {})}
        for pe in (32, 64)
        for row in fit("llama2_7b", pe, by="time", most=None, **options)["layouts"]
    ]


@pytest.mark.parametrize(
    ("against", "objective", "names"),
    [
        ("memory", "pe-hours", ("tokens_per_pe_second", "memory")),
        ("pe", "epoch-time", ("iteration_time", "pe")),
        ("pe-hours", "epoch-time", ("iteration_time", "tokens_per_pe_second")),
    ],
)
def test_fronts_of_layouts(cli, ranked, against, objective, names):
    """Of all rows on two numbers of PEs, none beats another, and none of a ranking does."""
    options = (*PROVISIONED, "--system", "dgx-h100", "--format", "json")
    code, out, err = cli(
        "pareto", *options, "--pe", "32,64", "--against", against, "--objective", objective
    )
    assert code == 0, err
    rows = json.loads(out)

    def read(row):
        return [row[name] * (-1 if "per" in name else 1) for name in names]

    assert {row["pe"] for row in rows} <= {32, 64}
    for row in rows:
        first, second = read(row)
        for other in (*rows, *ranked):
            time, cost = read(other)
            assert not (time <= first and cost <= second) or (time, cost) == (first, second)
    least = [min(read(row)[number] for row in ranked) for number in (0, 1)]
    assert read(rows[0])[0] == least[0]
    assert read(rows[-1])[1] <= least[1]


SEVEN = ("--model", "llama2_7b", "--pe", 8)
SEVENTY = ("--model", "llama2_70b", "--pe", 64, "--layout")
FRONTS = ("pareto", *PROVISIONED)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        # Words of a layout.
        (("fit", *SEVENTY, "tp8 pq4"), "'pq'"),
        (("fit", *SEVENTY, "tp8 pp4 dp4"), "--pe"),
        (("fit", *SEVENTY, "tp8 recompute=core_atn"), "'core_attn'"),
        (("fit", *SEVENTY, "tp8 recompute=mlp recompute=core_attn"), "recompute=core_attn,mlp"),
        (("fit", *SEVENTY, "tp8 zero4"), "zero"),
        (("fit", *SEVENTY, "tp"), "tp"),
        (("fit", *SEVENTY, ""), "--layout"),
        # What divides nothing.
        (("fit", "--model", "llama2_70b", "--pe", 24, "--layout", "tp12 dp2"), "64 heads"),
        (("fit", *SEVENTY, "tp8 pp1 v2"), "v2"),
        (("fit", *SEVENTY, "tp1 dp64 zero1 shard24"), "divide context x data\n"),
        (("fit", *SEVENTY, "tp8 mb3"), "mb3"),
        (("fit", *SEVENTY, "pp64 mb32 v2"), "80 blocks"),
        (("fit", *SEVENTY, "tp8 ep2"), "no experts"),
        # What has nothing to divide.
        (("fit", *SEVENTY, "pp4 sp"), "--layout"),
        (("fit", *SEVENTY, "tp8 shard4"), "--layout"),
        (("fit", *SEVENTY, "tp8 pp4 group4"), "--layout"),
        (("fit", *SEVEN, "--shard", 3), "--shard"),
        (("fit", *SEVEN, "--group", 4, "--schedule", "gpipe"), "--group"),
        (("fit", *SEVEN, "--group", 0), "--group"),
        (("fit", "--model", "llama2_7b", "--pe", 61, "--global-batch", 63), "--global-batch"),
        (("fit", "--model", "llama2_7b", "--pe", 61, "--global-batch", 60), "--global-batch"),
        # Values, networks and precisions.
        (("fit", *SEVEN, "--shard", "x"), "--shard"),
        (("fit", *SEVEN, "--layout", "tp8", "--group", 2), "--layout"),
        (("fit", "--model", "resnet50", "--pe", 8), "resnet50"),
        (("fit", "--model", "vit_l_16", "--pe", 8, "--sequence", 64), "197"),
        (("fit", "--model", "llama2_7b", "--pe", 0), "pe"),
        (("fit", *SEVEN, "--global-batch", 0), "--global-batch"),
        (("fit", *SEVEN, "--sequence", -1), "sequence"),
        (("fit", *SEVEN, "--precision", "bf16", "--by", "time", "--system", "abci"), "bf16"),
        (("fit", *SEVEN, "--precision", "nvfp4", "--system", "mi300x"), "nvfp4"),
        # Options of each question.
        (("fit", *TIMED, "--tokens", 1e12), "tokens"),
        (("fit", *TIMED, "--by", "time", "--price", 2), "price"),
        (("fit", *TIMED, "--by", "time", "--tokens", "nan"), "tokens"),
        (("best", *TIMED, "--tokens", 1e12), "--tokens"),
        (("best", *TIMED, "--global-batch", 8), "--global-batch"),
        (("best", *TIMED, "--headroom", "10%"), "--headroom"),
        (("fit", *SEVEN, "--headroom", "10"), "--headroom"),
        (("limits", *PROVISIONED, "--headroom", "100%"), "--headroom"),
        (("best", "--model", "llama2_7b", "--sequence", 64, "--pe", "8,16"), "--pe"),
        (("best", "--model", "llama2_7b", "--sequence", 64), "--pe"),
        (("best", "--pe", 8, "--sequence", 64), "--model"),
        (("best", *TIMED, "--sequence", 64, "--batch", 8), "--batch"),
        (("best", *TIMED, "--sequence", 64, "--across"), "--across"),
        (("limits", "--model", "llama2_7b", "--sequence", 64, "--intervals"), "--intervals"),
        (
            ("limits", "--model", "llama2_7b", "--sequence", 64, "--objective", "cost"),
            "--objective",
        ),
        (("provision", *PROVISIONED, "--tokens", 1e12), "--deadline"),
        (("provision", *PROVISIONED, "--deadline", "9 d"), "--tokens"),
        (("provision", *PROVISIONED, "--deadline", "9 GB", "--tokens", 1e12), "deadline"),
        ((*FRONTS, "--against", "cost"), "--against"),
        ((*FRONTS, "--against", "pe-hours", "--objective", "pe-hours"), "--against"),
        ((*FRONTS, "--objective", "train-time"), "--objective"),
        ((*FRONTS, "--price", 2), "--price"),
        ((*FRONTS, "--pe", "a,3"), "--pe"),
        (("limits", *PROVISIONED, "--efficiency", 2), "efficiency"),
        (("limits", *PROVISIONED, "--crossovers", "pe"), "--crossovers"),
        (("limits", *PROVISIONED, "--pe", 8), "--pe"),
    ],
)
def test_refused(arguments, where, cli):
    code, out, err = cli(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert where in err


@pytest.mark.parametrize(("batch", "warns"), [(63, True), (64, False), (62, False), (1, False)])
def test_a_batch_that_allows_no_replicas_is_remarked(cli, batch, warns):
    options = ("--model", "llama2_7b", "--pe", 64, "--global-batch", batch, "--format", "json")
    code, out, err = cli("fit", *options)
    assert (code, "one replica" in err) == (0, warns)
    most = max(row["data"] for row in json.loads(out)["layouts"])
    assert (most == 1) == (warns or batch == 1)


def test_rates_above_ten_thousand_have_no_exponent(cli):
    options = ("--model", "llama2_7b", "--system", "dgx-h100", "--pe", 8, "--by", "time")
    _, answer = ask(cli, *options)
    rate = answer["layouts"][0]["time"]["tokens_per_pe_second"]
    assert rate > 1e4
    _, out, _ = cli("fit", *options)
    assert f" {float(f'{rate:.4g}'):,.0f} " in out
    assert "e+" not in out
