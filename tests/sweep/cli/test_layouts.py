"""Layouts of transformers: the best of a space, one explained, and what is refused."""

import itertools
import json
import re
from typing import Any

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
    "max_position_embeddings": 4096,
}
CAPACITY = 84.93e9  # of an H100
SEVEN = ("--model", "llama2_7b", "--system", "dgx-h100")
TEXT = (*SEVEN, "--sequence", 4096, "--global-batch", 512)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B))
    return path


def ask(cli, *words):
    """The code and the answer."""
    code, out, _ = cli(*words, "--format", "json")
    return code, json.loads(out, parse_constant=pytest.fail)


def test_best_layouts_of_two_systems(cli):
    """The fastest ahead, each once, with what follows from its time and all tokens."""
    options = ("--pe", 16, "--tokens", "1T", "--price", 2, "--system", "dgx-h100,dgx-a100")
    code, rows = ask(cli, "best", *TEXT, *options)
    assert code == 0
    places = [[*rows] for _, rows in itertools.groupby(rows, lambda row: row["system"])]
    assert [len(rows) for rows in places] == [10, 10]
    for rows in places:
        times = [row["iteration_time"] for row in rows]
        assert times == sorted(times)
        assert [row["rank"] for row in rows] == [*range(1, 11)]
        assert len({row["layout"] for row in rows}) == 10
        assert {row["layout"] for row in rows} == {row["strategy"] for row in rows}
        # Draws are skewed: of two that are nearly alike, the first may lose in more than half.
        assert 0.45 <= rows[0]["faster_than_next"] <= 1
        counts = [reason["layouts"] for reason in rows[0]["losers"]]
        assert counts == sorted(counts, reverse=True)
        for row in rows:
            seconds = row["iteration_time"]
            assert row["train_time"] == pytest.approx(seconds * 1e12 / (512 * 4096))
            assert row["train_time_p10"] < row["train_time"] < row["train_time_p90"]
            assert row["pe_hours"] == pytest.approx(row["train_time"] * 16 / 3600)
            assert row["cost"] == pytest.approx(2 * row["pe_hours"])
            assert row["tokens_per_second"] == pytest.approx(512 * 4096 / seconds)
            assert row["tokens_per_pe_second"] == pytest.approx(row["tokens_per_second"] / 16)
            assert 0 < row["mfu"] <= row["hfu"] < 1


def test_numbers_are_read_as_people_write_them(cli):
    """And headroom of memory stays free."""
    said = ("--pe", 16, "--sequence", "4k", "--tokens", "1T", "--headroom", "10%")
    plain = ("--pe", "16", "--sequence", 4096, "--tokens", 1e12, "--headroom", 0.1)
    code, rows = ask(cli, "best", *SEVEN, "--global-batch", "1k", *said)
    assert (code, rows) == ask(cli, "best", *SEVEN, "--global-batch", 1024, *plain)
    assert max(row["memory"] for row in rows) <= 0.9 * CAPACITY
    _, (first, *_) = ask(cli, "best", *SEVEN, "--global-batch", 1024, *plain[:4])
    assert 0.9 * CAPACITY < first["memory"] <= CAPACITY


def test_why_others_do_not_fit(cli):
    code, out, _ = cli("best", *SEVEN, "--pe", 24, "--global-batch", 24 * 43)
    assert code == 0
    assert re.search(r"\bheads +[\d,]+ +a tensor degree that divides 32 heads\n", out)
    assert re.search(r"\bmemory +[\d,]+ +.*\bPEs of at least [\d.]+ GB", out)
    assert re.search(r" 1 +tp1 .* 1\d,\d\d0 ", out)  # tokens a second without an exponent
    assert "e+" not in out
    many = ("--model", "llama2_7b,llama2_70b", "--system", "dgx-h100", "--pe", 8, "--batch", 8)
    names = re.findall(r"^ (\w+) +memory +[\d,]+ ", cli("best", *many)[1], re.MULTILINE)
    assert names == ["llama2_7b", "llama2_70b"]


@pytest.mark.parametrize("free", [0, 0.1])
def test_a_remedy_for_memory_is_more_than_there_is(cli, free):
    """And on PEs of that size more layouts fit."""
    options = (*SEVEN, "--pe", 8, "--batch", 64, "--headroom", free)

    def find_loser(*stated):
        _, rows = ask(cli, "best", *options, *stated)
        (row,) = (row for row in rows[0]["losers"] if row["reason"] == "memory")
        return row["layouts"], float(*re.findall(r"at least ([\d.]+) GB", row["remedy"]))

    count, size = find_loser()
    assert size >= 85
    fewer, more = find_loser("--set", f"memory_capacity={size} GB")
    assert fewer < count
    assert more > size


def test_nothing_fits(cli):
    options = ("--model", "llama3_405b", "--system", "dgx-h100", "--global-batch", 64)
    code, out, err = cli("best", *options, "--pe", 8)
    assert code == 4
    assert re.search(r"PEs of at least [\d.]+ GB, or more of them", out)
    assert "feasible: memory" in err


def test_one_layout_by_part(config, cli):
    """Each part is the product that is printed, and all of them the reference's memory."""
    words = "tp4 pp2 dp2 mb2 zero1 sp recompute=mlp+layernorm"
    options = ("--pe", 16, "--system", "dgx-h100", "--attention", "unfused", "--loss", "chunked")
    more = ("--sequence", 2048, "--global-batch", 1024, "--strategy", words)
    code, answer = ask(cli, "explain", "--model", config, *options, *more)
    norms: Any = {"gated": True, "tied": False, "biases": False, "norm": "rmsnorm"}
    net = Network(*(32, 4096, 32, 14336, 128256, 2048, 8), **norms)
    degrees: Any = {"tensor": 4, "pipeline": 2, "data": 2, "micro": 2, "zero": 1, "batch": 1024}
    layout = Layout(
        **degrees,
        sequence_parallel=True,
        recompute=frozenset({"mlp", "layernorm"}),
        fused_attention=False,
        loss_parts=8,
    )
    hand = memory(net, layout, reserved=1e9)
    total = sum(row["bytes"] for row in answer["memory_formulas"])
    assert total == answer["memory"] == pytest.approx(hand["total"], rel=1e-9)
    for row in answer["memory_formulas"]:
        product = eval(row["numbers"].replace(",", "").replace("x", "*"))  # of our own numbers
        assert product == pytest.approx(row["bytes"], rel=1e-6), row["part"]
    assert (code, answer["strategy"]) == (0, words)
    assert {row["layout"] for row in answer["changes"]} <= {
        words.replace("mb2", f"mb{micro}") for micro in (4, 8, 16)
    }


def test_a_layout_that_does_not_fit(cli):
    """What is near it fits, of what one change makes alone."""
    options = ("--model", "llama2_70b", "--pe", 64, "--system", "dgx-h100", "--global-batch", 1024)
    words = "tp8 pp4 mb16 zero1"
    code, out, err = cli("explain", *options, "--strategy", words)
    assert code == 4
    assert "What would let it fit" in out
    assert "16 sequences pass at once; write 'mb1'" in err
    _, answer = ask(cli, "explain", *options, "--strategy", words)
    assert {"tp8 pp4 dp2 mb2 zero1", "tp8 pp4 dp2 mb16 zero1 recompute=blocks"} <= {
        row["layout"] for row in answer["changes"]
    }
    for row in answer["changes"]:
        again = ask(cli, "predict", *options, "--strategy", row["layout"])[1]
        assert again["memory"] == row["memory"] <= CAPACITY


def predict(cli, layout, *options):
    given = ("--system", "dgx-h100", "--global-batch", 1024, *options)
    code, answer = ask(cli, "predict", *given, "--strategy", layout)
    assert code in (0, 4)
    return answer


def test_options_that_take_less_memory(config, cli):
    """Sharding over a node takes more than over all; of logits each loss keeps less."""

    def measure(layout, *options):
        given = ("--model", config, "--pe", 32, "--sequence", 2048, *options)
        return predict(cli, layout, *given)["memory_parts"]

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


@pytest.mark.parametrize(("length", "remarks"), [(4096, []), (8192, ["longer"])])
def test_longer_than_it_was_trained_for(config, cli, length, remarks):
    answer = predict(cli, "tp8 dp1", "--model", config, "--pe", 8, "--sequence", length)
    assert answer["remarks"] == remarks


def test_intervals_are_wider_where_less_is_known(cli):
    """Mixtures of experts, narrow products, devices and software of few runs or none."""

    def measure(model="llama3_8b", system="dgx-h100:software=megatron", precision="bf16"):
        options = ("--model", model, "--pe", 64, "--system", system, "--precision", precision)
        answer = predict(cli, "tp8 mb1 zero1", *options)
        assert ("software of AMD" in answer["times"]) == ("mi300x" in system)
        time = answer["intervals"]["iteration_time"]
        return time["p90"] / time["p50"]

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


def test_computing_again_counts_in_hfu_alone(cli):
    """SC21, equation 3: whole blocks again are a third more, but for the logits."""
    plain, again = (
        predict(cli, f"tp8 pp1 dp2 mb1 zero1{more}", *TEXT, "--pe", 16)
        for more in ("", " recompute=blocks")
    )
    assert plain["hfu"] == plain["mfu"]
    blocks = 32 * (2 * (4 * 4096**2 + 3 * 4096 * 11008) + 4 * 4096 * 4096)
    logits = 2 * 4096 * 32000
    share = 1 + blocks / (3 * (blocks + logits))
    assert again["hfu"] / again["mfu"] == pytest.approx(share)


def test_the_fewest_pes_for_a_deadline(cli):
    """One doubling less is late; of these PEs the layout is the best."""
    options = (*TEXT, "--tokens", "100G", "--price", 2)
    code, (row,) = ask(cli, "provision", *options, "--deadline", "10 d")
    assert (code, row["train_time"] <= 10 * 86400) == (0, True)
    assert 0.5 <= row["holds"] <= 1
    first = ask(cli, "best", *options, "--pe", row["pe"])[1][0]
    assert {name: first[name] for name in ("layout", "train_time", "cost")}.items() <= row.items()
    fewer = ask(cli, "best", *options, "--pe", row["pe"] // 2)[1][0]
    assert fewer["train_time"] > 10 * 86400
    code, _, err = cli("provision", *options[:-2], "--deadline", "1 min")
    assert code == 4
    assert "no strategy meets the deadline" in err
    few = ("--pe", row["pe"] // 2, "--deadline", "10 d")
    code, (late,) = ask(cli, "provision", *options[:-2], *few)
    fastest = ask(cli, "best", *options[:-2], *few[:2])[1][0]["layout"]
    assert (code, late["reason"].endswith(f" PEs ({fastest})")) == (4, True)


def test_a_deadline_that_nothing_meets_says_what_comes_nearest(cli):
    options = (*TEXT, "--tokens", "100G", "--pe", 16)
    first = ask(cli, "best", *options)[1][0]
    for more in ((), ("--holds", 0.9)):
        code, _, err = cli("best", *options, "--deadline", "1 h", *more)
        assert code == 4
        days = f"{first['train_time'] / 86400:.3g} d"
        assert f"too_slow; at best {days} (" in err
        assert f"), by {first['layout']} on 16 PEs of dgx-h100" in err


def test_tokens_are_those_of_all_epochs(cli):
    options = (*TEXT, "--tokens", "100G", "--pe", 16, "--deadline", "9 d", "--epochs", 3)
    code, out, err = cli("provision", *options)
    assert (code, out) == (2, "")
    assert err.startswith("paradl: --epochs: --tokens are those of the whole training")


def test_a_prediction_has_a_cost(cli):
    """Of all tokens, or of an epoch; none of what cannot exist."""
    options = (*TEXT, "--tokens", "100G", "--pe", 16, "--strategy", "tp8 dp2")
    _, answer = ask(cli, "predict", *options, "--price", "dgx-h100=2")
    assert answer["cost"] == pytest.approx(2 * 16 * answer["train_time"] / 3600)
    _, (row,) = ask(cli, "best", *options, "--price", 2)
    assert row["cost"] == pytest.approx(answer["cost"], rel=1e-6)
    assert re.search(r"\n cost +[\d,.]+\n", cli("predict", *options, "--price", 2)[1])
    assert "cost" not in ask(cli, "predict", *options)[1]
    _, answer = ask(cli, "predict", *TEXT, "--pe", 16, "--strategy", "tp8 dp2", "--price", 2)
    assert answer["cost"] == pytest.approx(2 * 16 * answer["epoch_time"] / 3600)
    code, answer = ask(cli, "predict", *TEXT, "--pe", 3, "--strategy", "tp3", "--price", 2)
    assert (code, answer["cost"]) == (4, None)


def test_limits_of_layouts(cli):
    """The fastest layout at the end of the axis; fewer PEs are efficient."""
    code, (row,) = ask(cli, "limits", *TEXT[:-1], 64, "--efficiency", "80%")
    assert (code, row["largest_pe"]) == (0, 1024)
    assert row["efficient_pe"] < row["fastest_pe"]
    first = ask(cli, "best", *TEXT[:-1], 64, "--pe", row["fastest_pe"])[1][0]
    assert first["epoch_time"] == pytest.approx(row["fastest_time"])


def test_layouts_that_trade_time_for_memory(cli):
    """None beats another, and no layout that `best` lists beats one."""
    code, front = ask(cli, "pareto", *TEXT, "--pe", "32,64", "--against", "memory")
    _, ranked = ask(cli, "best", *TEXT, "--pe", "32,64")
    assert code == 0

    def read(row):
        return row["epoch_time"], row["memory"]

    assert len(front) > 5
    for row in front:
        time, size = read(row)
        for other in map(read, (*front, *ranked)):
            # Times of a ranking are of another precision.
            assert not (other[0] < time * (1 - 1e-6) and other[1] <= size)
    assert front[0]["epoch_time"] == pytest.approx(ranked[0]["epoch_time"])


def test_the_least_memory(cli):
    """That of the last layout of a front, which takes less than all others."""
    asked = (*TEXT, "--pe", 32)
    _, front = ask(cli, "pareto", *asked, "--against", "memory")
    code, ranked = ask(cli, "best", *asked, "--objective", "memory")
    assert code == 0
    memory = [row["memory"] for row in ranked]
    assert memory == sorted(memory)
    assert memory[0] == min(row["memory"] for row in front)
    assert ranked[0]["epoch_time"] > front[0]["epoch_time"]


def test_the_least_memory_of_layers(cli):
    asked = ("--model", "resnet50", "--dataset", "imagenet", "--system", "abci", "--pe", 8)
    by_time, by_memory = (
        ask(cli, "best", *asked, "--batch", 32, "--objective", goal)[1]
        for goal in ("epoch-time", "memory")
    )
    assert by_memory[0]["memory"] == min(row["memory"] for row in by_time if row["feasible"])


SEVENTY = (
    *("explain", "--model", "llama2_70b", "--system", "abci", "--pe", 64),
    *("--global-batch", 1024, "--strategy"),
)
BEST = ("best", "--model", "llama2_7b", "--system", "abci", "--pe", 8)
RESNET = ("--model", "resnet50", "--system", "abci")


@pytest.mark.parametrize(
    ("arguments", "code", "where"),
    [
        # Words of a layout.
        ((*SEVENTY, "tp8 pp4 dp4"), 2, "is 128 PEs, not 64"),
        ((*SEVENTY, "tp8 recompute=mlp recompute=core_attn"), 2, "recompute=core_attn+mlp"),
        # What divides nothing, or has nothing to divide.
        ((*SEVENTY, "tp8 pp1 v2"), 4, "v2"),
        ((*SEVENTY, "tp1 dp64 zero1 shard24"), 4, "shard24 does not divide"),
        ((*SEVENTY, "tp8 mb3"), 4, "mb3"),
        ((*SEVENTY, "pp64 mb32 v2"), 4, "80 blocks (docs"),
        ((*SEVENTY, "tp8 ep2"), 4, "no experts"),
        ((*SEVENTY, "pp4 sp"), 2, "tp2"),
        ((*SEVENTY, "tp8 shard4"), 2, "zero1"),
        ((*SEVENTY, "tp8 pp4 group4"), 2, "v2"),
        # Values, networks and precisions.
        ((*SEVENTY[:7], "--strategy", "tp8"), 2, "--batch: no batch is given"),
        ((*BEST, "--tokens", 15), 2, "fewer than a global batch of 2,048; did you mean 15T?"),
        ((*BEST, "--tokens", "1M", "--global-batch", "1k"), 2, "a global batch of 2,097,152"),
        (
            ("best", "--model", "resnet50", "--dataset", "imagenet", "--tokens", "1T"),
            2,
            "--tokens: resnet50 reads no text of any length; leave it out",
        ),
        ((*BEST, "--batch", 8, "--global-batch", 8), 2, "--global-batch: the batch is given twice"),
        ((*BEST, "--tokens", "1T", "--dataset", "pile"), 2, "--tokens: "),
        ((*BEST, "--global-batch", 0), 2, "--global-batch: expected at least 1"),
        ((*BEST, "--sequence", -1), 2, "--sequence: expected at least 1"),
        ((*BEST, "--headroom", "100%"), 2, "--headroom: "),
        ((*BEST, "--system", "dgx1-v100", "--precision", "bf16"), 2, "only for fp32, amp"),
        (("best", *RESNET, "--sequence", 64), 2, "--sequence: resnet50 reads no"),
        (("provision", *TEXT, "--deadline", "9 d"), 2, "--epochs: "),
        (("limits", "store.zarr", "--sequence", 64), 2, "--sequence: fixed in the store"),
    ],
)
def test_refused(arguments, code, where, cli):
    given, out, err = cli(*arguments)
    assert (given, bool(out), err.count("\n")) == (code, code == 4, 1)
    assert where in err


def test_networks_without_blocks_take_layouts_of_data(cli):
    options = (*RESNET, "--dataset", "imagenet", "--pe", 8, "--batch", 32)
    _, layout = ask(cli, "predict", *options, "--strategy", "tp1 dp8 mb32")
    _, data = ask(cli, "predict", *options, "--strategy", "data")
    assert layout["epoch_time"] == data["epoch_time"]
    assert "no blocks" in cli("predict", *options, "--strategy", "tp2 dp4")[2]
    assert (
        "transformers" in cli("explain", *options, "--strategy", "data", "--launch", "megatron")[2]
    )
