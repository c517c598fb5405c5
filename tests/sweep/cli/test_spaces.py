"""Questions without a store, and options that slice one."""

import json

import pytest

import paradl

PLACE = ("--dataset", "imagenet", "--system", "abci", "--oracle", "paper")
SPACE = ("--model", "alexnet", *PLACE)
SMALL = (*SPACE, "--pe", "4,8", "--batch", "32", "--strategy", "data,filter")


@pytest.mark.parametrize("command", ["best", "limits"])
def test_a_question_without_a_store(command, cli):
    code, out, err = cli(command, *SMALL, "--format", "json")
    assert (code, err) == (0, "")
    assert {row["strategy"] for row in json.loads(out)} == {"data", "filter"}


def test_options_slice_a_store(mixed_url, cli):
    options = ("--format", "json", "--model", "alexnet", "--pe", "4,8")
    _, out, _ = cli("limits", mixed_url, *options)
    _, same, _ = cli("limits", mixed_url, *options[:2], "--sel", "model=alexnet", "--sel", "pe=4,8")
    assert json.loads(out) == json.loads(same)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), "--model"),
        ((*SMALL, "--sel", "pe=4"), "--sel"),
        ((*SMALL, "--pe", "0"), "--pe"),
        ((*SMALL, "--pe", "8..4"), "--pe"),
        ((*SMALL, "--strategy", "dta"), "--strategy"),
        ((*SMALL, "--set", "gama=1"), "--set"),
        ((*SMALL, "--price", "x"), "--price"),
        ((*SMALL, "--price", "1", "--price", "2"), "--price"),
        ((*SMALL, "--objective", "cost"), "--price"),
        ((*SMALL, "--pe", "64.."), "--pe"),
        ((*SMALL, "--batch", "..64"), "--batch"),
        ((*SMALL, "--set", "gamma=1.."), "--set: gamma"),
    ],
)
def test_bad_options(options, name, cli):
    code, out, err = cli("best", *options)
    assert (code, out) == (2, "")
    assert err.startswith(f"paradl: {name}: ")
    assert err.count("\n") == 1


def test_the_nearest_values_of_a_store(mixed_url, cli):
    near = ("--sel", "inter_bandwidth=9 GB/s", "--pe", "7,8", "--sel", "model=alexnet")
    code, _, err = cli("best", mixed_url, *near)
    assert (code, "--sel: no inter_bandwidth '9 GB/s'" in err) == (2, True)
    assert "12.5 GB/s" in err
    assert "--nearest" in err
    code, out, err = cli("best", mixed_url, *near, "--nearest", "--format", "json")
    exact = ("--sel", "inter_bandwidth=12.5 GB/s", "--pe", "8", "--sel", "model=alexnet")
    assert (code, out) == cli("best", mixed_url, *exact, "--format", "json")[:2]
    assert "inter_bandwidth: 12.5 GB/s" in err
    assert "pe: 8" in err


def test_a_store_has_its_own_settings(mixed_url, cli):
    code, _, err = cli("best", mixed_url, "--oracle", "paper")
    assert code == 2
    assert err.startswith("paradl: --oracle: ")


def test_losers_are_told(cli):
    code, out, _ = cli("best", *SPACE, "--pe", "100", "--batch", "8", "--strategy", "data,filter")
    assert code == 0
    assert "too_many_pes" in out
    assert "pe=64" in out


def test_a_batch_that_nothing_bounds_is_told(cli):
    options = (*SPACE, "--pe", "4", "--strategy", "data", "--format", "json")
    assert "--max-global-batch" in cli("best", *options)[2]
    assert cli("best", *options, "--max-global-batch", "256")[2] == ""


@pytest.mark.parametrize(
    "question",
    [
        ("pareto",),
        ("best", "--worst-case", "system"),
        ("provision", "--need", "batch", "--pe", "4"),
    ],
)
def test_a_bound_that_a_question_of_a_store_lacks_is_refused(question, small_url, cli):
    code, out, err = cli(question[0], small_url, *question[1:], "--max-global-batch", 64)
    assert (code, out) == (2, "")
    assert err.startswith("paradl: --max-global-batch: ")


@pytest.mark.parametrize("command", ["best", "limits"])
def test_a_bound_tells_that_cells_keep_their_groups(command, tmp_path, cli):
    axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "pe": [1, 16]}
    strategies = ["data", "data+spatial:group=best"]
    outputs = ["comp_time", "comm_time", "memory", "limit", "replicas"]
    url = str(tmp_path / "cube.zarr")
    paradl.run({"axes": axes | {"strategy": strategies, "batch": 8}, "outputs": outputs}, url)
    for strategy, noted in zip(strategies, (False, True), strict=True):
        err = cli(command, url, "--strategy", strategy, "--max-global-batch", 64)[2]
        assert (strategy in err) == noted


TWO = (
    *("--model", "alexnet", "--dataset", "imagenet", "--system", "abci"),
    *("--pe", "4", "--batch", "32"),
)


@pytest.mark.parametrize("command", ["best", "limits", "pareto"])
def test_systems_of_different_precision_are_noted(command, cli):
    options = (*TWO, "--strategy", "data", "--system", "abci,dgx-h100", "--json")
    code, out, err = cli(command, *options)
    assert code == 0
    settings = {(row["system"], row["precision"], row["software"]) for row in json.loads(out)}
    assert settings <= {("abci", "fp32", "plain"), ("dgx-h100", "amp", "ddp")}
    assert "fp32" in err
    assert "amp" in err
    notes = json.loads(out)[0]["notes"]
    assert any("fp32" in note and "amp" in note for note in notes)
    assert all(row["notes"] == notes for row in json.loads(out))
    assert json.loads(cli(command, *options, "--quiet")[1]) == json.loads(out)
    assert "notes" not in cli(command, *options[:-1], "--format", "csv")[1]


def test_one_optimizer_needs_more_memory(cli):
    memory = [
        json.loads(cli("best", *TWO, "--strategy", "data", "--optimizer", name, "--json")[1])
        for name in ("none", "adam")
    ]
    assert memory[0][0]["memory"] < memory[1][0]["memory"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        # fsdp is a layout of transformers; VGG-16 is none.
        *((name, "'data:zero=3'") for name in ("fsdp", "data+fsdp2", "zero-3")),
        ("data+megatron", "megatron"),
    ],
)
def test_strategies_of_other_frameworks(name, words, cli):
    code, _, err = cli("best", *TWO, "--strategy", name)
    assert code == 2
    assert words in err


@pytest.mark.parametrize(("conventions", "stages"), [("table", 56), ("authors", 174)])
def test_conventions_bound_a_pipeline(conventions, stages, cli):
    options = ("--model", "resnet50", *PLACE, "--conventions", conventions, "--batch", "1024")
    pipeline = ("--strategy", "pipeline", "--pe", "56,57,174,175", "--set", "gamma=0.01")
    code, out, _ = cli("limits", *options, *pipeline, "--format", "json")
    (row,) = json.loads(out)
    assert (code, row["largest_pe"]) == (0, stages)
