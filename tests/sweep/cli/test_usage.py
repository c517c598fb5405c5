"""Slips on the command line: one message that says what to write."""

from shlex import quote

import pytest

ASK = ("--model", "alexnet", "--dataset", "imagenet", "--strategy", "data")


def fail(paradl, *arguments: object) -> str:
    """What stderr says of a command that is bad usage."""
    code, out, err = paradl(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        (("--precision", "bf16"), "--system NAME:precision=bf16"),
        (("--gpus", "8"), "--pe"),
        (("--inter-bandwidth", "25 GB/s"), "--set inter_bandwidth="),
    ],
)
@pytest.mark.parametrize("verb", ["predict", "best"])
def test_what_an_option_is_called_here(verb, options, instead, paradl):
    err = fail(paradl, verb, *ASK, *options)
    assert options[0] in err
    assert instead in err


@pytest.mark.parametrize("value", ["32.5", "1-64", "many"])
def test_a_count_is_a_whole_number(value, paradl):
    assert "whole number" in fail(paradl, "predict", *ASK, "--pe", 8, "--batch", value)


def test_a_choice_that_is_none_is_named_with_those_there_are(paradl):
    err = fail(paradl, "best", *ASK, "--objective", "profit")
    assert "'--objective': 'profit' is not one of 'epoch-time', " in err


def test_a_share_is_a_number(paradl):
    assert "expected a number" in fail(paradl, "limits", *ASK, "--efficiency", "half")


@pytest.mark.parametrize(
    ("question", "option"),
    [
        (("limits", "--price", "3"), "--price"),
        (("limits", "--crossovers", "pe", "--price", "3"), "--price"),
        (("limits", "--crossovers", "pe", "--intervals"), "--intervals"),
        (("limits", "--crossovers", "pe", "--efficiency", "0.8"), "--efficiency"),
        (
            ("provision", "--deadline", "1 h", "--epochs", "9", "--efficiency", "0.8"),
            "--efficiency",
        ),
        (("provision", "--need", "batch", "--efficiency", "0.8"), "--efficiency"),
        (("provision", "--need", "batch", "--epochs", "9"), "--epochs"),
        (("provision", "--need", "batch", "--price", "3"), "--price"),
    ],
)
def test_no_option_is_ignored(question, option, paradl):
    assert fail(paradl, *question, *ASK, "--pe", "4,16").startswith(f"paradl: {option}: ")


def test_a_range_is_written_with_two_dots(paradl):
    err = fail(paradl, "limits", *ASK, "--pe", "1-64", "--batch", 32)
    assert "'1..64'" in err


@pytest.mark.parametrize("command", ["best", "limits", "status"])
def test_a_spec_is_no_cube(command, tmp_path, paradl):
    spec = tmp_path / "week.yaml"
    spec.write_text("axes: {}\n")
    assert "paradl sweep week.yaml STORE" in fail(paradl, command, spec)


def test_the_spec_stands_first(tmp_path, paradl):
    folder = tmp_path / ("a long name " * 12)  # a command to copy is never cut short
    folder.mkdir()
    spec, store = folder / "week.yaml", folder / "out.zarr"
    err = fail(paradl, "sweep", store, spec)
    assert f"paradl sweep {quote(str(spec))} {quote(str(store))}" in err
    assert list(folder.iterdir()) == []


def test_an_unknown_model_may_be_written(paradl):
    err = fail(paradl, "best", "--model", "mobilenetv3", "--dataset", "imagenet")
    assert "'mobilenet_v2'" in err
    assert "docs/your-model.md" in err


@pytest.mark.parametrize("model", ["net.onnx", "./net.onnx", "net.pt"])
def test_models_of_frameworks_are_written_anew(model, paradl):
    err = fail(paradl, "predict", *ASK[2:], "--model", model, "--pe", 8, "--batch", 32)
    assert "docs/your-model.md" in err


@pytest.mark.parametrize("command", [(), ("sweep",), ("surrogate", "train"), ("plot", "map")])
def test_help_and_quiet_have_short_names(paradl, command):
    code, out, _ = paradl(*command, "-h")
    assert (code, out) == (0, paradl(*command, "--help")[1])
    assert "-h, --help" in out
    assert not command or "-q, --quiet" in out or command[0] == "plot"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("system import run.log --like abcd -o mine.yaml", "paradl: --like: unknown system"),
        ("profile resnet --dataset imagenet --device d -o mine.yaml", "paradl: unknown model"),
        ("model check resnet part.safetensors", "paradl: unknown model"),
    ],
)
def test_an_unknown_name_stands_behind_its_own_option(command, message, paradl):
    assert fail(paradl, *command.split()).startswith(message)
