"""Slips on the command line: one message that says what to write."""

from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from cubes import SMALL

import paradl
from paradl.grids.reading.errors import InputError

ASK = ("--model", "alexnet", "--dataset", "imagenet", "--strategy", "data", "--system", "abci")
PLACE = ("--pe", 8, "--batch", 1)


def fail(cli, *arguments: object) -> str:
    """What stderr says of a command that is bad usage."""
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        (("--gpus", "8"), "--pe"),
        (("--inter-bandwidth", "25 GB/s"), "--set inter_bandwidth="),
    ],
)
@pytest.mark.parametrize("verb", ["predict", "best"])
def test_what_an_option_is_called_here(verb, options, instead, cli):
    err = fail(cli, verb, *ASK, *options)
    assert options[0] in err
    assert instead in err


@pytest.mark.parametrize("value", ["32.5", "1-64", "many"])
def test_a_count_is_a_whole_number(value, cli):
    assert "whole number" in fail(cli, "predict", *ASK, "--pe", 8, "--batch", value)


def test_a_choice_that_is_none_is_named_with_those_there_are(cli):
    err = fail(cli, "best", *ASK, "--objective", "profit")
    assert "'--objective': 'profit' is not one of 'epoch-time', " in err


def test_a_share_is_a_number(cli):
    assert "expected a number" in fail(cli, "limits", *ASK, "--efficiency", "half")


@pytest.mark.parametrize(
    ("question", "option"),
    [
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
def test_no_option_is_ignored(question, option, cli):
    assert fail(cli, *question, *ASK, "--pe", "4,16").startswith(f"paradl: {option}: ")


def test_a_range_is_written_with_two_dots(cli):
    err = fail(cli, "limits", *ASK, "--pe", "1-64", "--batch", 32)
    assert "'1..64'" in err


@pytest.mark.parametrize("command", ["best", "limits", "status"])
def test_a_spec_is_no_cube(command, tmp_path, cli):
    spec = tmp_path / "week.yaml"
    spec.write_text("axes: {}\n")
    assert "paradl sweep week.yaml STORE" in fail(cli, command, spec)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("best", "config.json"), "config.json: a JSON file, not a cube"),
        (("sweep", "config.json", "out.zarr"), "config.json: expected a spec, got a model's"),
        (("best", *ASK, "--calibration", "config.json"), "--calibration: config.json: expected a"),
        (("best", *ASK, "--system", "config.json"), "--system: config.json: expected a system's"),
    ],
)
def test_a_config_of_a_model_is_named_as_one(command, message, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text('{"model_type": "llama", "hidden_size": 4096}')
    err = fail(cli, *command)
    assert err.startswith(f"paradl: {message}")
    assert "--model config.json" in err


def test_any_json_is_no_calibration(tmp_path, cli):
    path = tmp_path / "other.json"
    path.write_text('{"a": 1}')
    err = fail(cli, "predict", *ASK, *PLACE, "--calibration", path)
    assert "expected a calibration's file, got another; paradl calibrate writes one" in err


def test_an_unknown_strategy_may_be_a_layout(cli):
    assert "or a layout, as in 'tp8 pp4 dp2'" in fail(cli, "best", *ASK[:4], "--strategy", "foo")


LLAMA = ("--model", "llama2_7b", "--pe", 8)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("list", "systems", "abci,dgx-h100"), "expected one system, got 2"),
        (("predict", *ASK[:4], "--strategy", "data,spatial", *PLACE), "--strategy: expected one"),
    ],
)
def test_what_takes_one_value_says_so(command, message, cli):
    err = fail(cli, *command)
    assert err.startswith(f"paradl: {message}")
    assert "did you mean" not in err


@pytest.mark.parametrize("verb", ["predict", "best", "list models"])
def test_an_id_of_hugging_face_is_no_file(verb, cli):
    name = "meta-llama/Llama-3.1-8B"
    options = ("--strategy", "data", *PLACE) if verb == "predict" else ()
    err = fail(
        cli, *verb.split(), *((name,) if verb == "list models" else ("--model", name)), *options
    )
    assert "config.json" in err
    assert "'llama3_8b'" in err
    name = "mine.yaml"
    err = fail(
        cli, *verb.split(), *((name,) if verb == "list models" else ("--model", name)), *options
    )
    assert "Hugging Face" not in err


@pytest.mark.parametrize(
    "layout", ["tp8,pp4", "tp8, pp4", "TP8 PP4", "tp:8 pp:4", "tp 8 pp 4", "tp8xpp4", "tp8-pp4"]
)
def test_words_of_a_layout_stand_apart(layout, cli):
    err = fail(cli, "predict", *LLAMA[:2], "--pe", 32, "--batch", 1, "--strategy", layout)
    assert "write 'tp8 pp4'" in err


@pytest.mark.parametrize(
    ("layout", "instead"),
    [
        *(("tp8 vpp2", "'v'"), ("tp8 mbs1", "'mb'"), ("dp2tp4", "'dp2 tp4'"), ("dp8 tp0", "1 to")),
        *(("tp8 recompute=selective", "'core_attn'"), ("dp8 dp4", "dp is repeated")),
        *(("dp8 dp8", "dp is repeated"), ("tp8 sp sp", "sp is repeated")),
        ("tp8 recompute=mlp recompute=mlp", "modules are joined by +"),
    ],
)
def test_other_words_of_a_layout(layout, instead, cli):
    assert instead in fail(cli, "predict", *LLAMA, "--batch", 1, "--strategy", layout)


@pytest.mark.parametrize(("setting", "name"), [("tp", "tensor"), ("mb", "micro"), ("v", "chunks")])
def test_short_names_of_settings_lead_to_long_ones(setting, name, cli):
    strategy = f"data+tensor:{setting}=8"
    err = fail(cli, "predict", *LLAMA, "--batch", 1, "--strategy", strategy)
    assert f"did you mean {name!r}?" in err


@pytest.mark.parametrize(
    ("deadline", "instead"), [("60", "60 s, min, h or d"), ("tomorrow", "6 h"), ("-2 h", "0")]
)
@pytest.mark.parametrize("model", [ASK, ("--model", "llama2_7b", "--sequence", "4k")])
def test_a_deadline_is_a_time_with_its_unit(deadline, instead, model, cli):
    err = fail(cli, "provision", *model, "--deadline", deadline)
    assert err.startswith("paradl: --deadline: ")
    assert instead in err


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        (("plot", "scaling", *ASK, "-o", "{}.bmp"), ".png"),
        (("hybrid", *ASK[:4], "--batch", 8, "--pe", 8, "--plot", "{}.gif"), ".png"),
        (("place", "vgg16", "--devices", 2, "--plot", "{}"), ".png"),
        (("report", *ASK, "-o", "{}.pdf"), ".html"),
        (("best", *ASK, "--report", "{}"), ".html"),
        (("calibrate", "runs.csv", "-o", "{}.txt"), ".yaml"),
        (("import", "machine", "run.log", "-o", "{}.csv"), ".yaml"),
    ],
)
def test_an_output_has_an_ending_and_a_folder(command, ending, tmp_path, cli):
    *rest, name = command
    assert ending in fail(cli, *rest, name.format(tmp_path / "answer"))
    missing = tmp_path / "nowhere" / f"answer{ending}"
    assert "no folder" in fail(cli, *rest, missing)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--overwrite",)])
def test_a_sweep_makes_no_parent_folder(options, spec_file, tmp_path, cli):
    spec = spec_file(SMALL)
    store = tmp_path / "nowhere" / "cube.zarr"
    assert f"no folder '{store.parent}'" in fail(cli, "sweep", spec, store, *options)
    with pytest.raises(InputError, match="no folder"):
        paradl.run(SMALL, store)
    assert not store.parent.exists()


def test_nor_do_data_sets_and_surrogates(spec_file, tmp_path, cli):
    folder = tmp_path / "nowhere"
    for command in (
        ("sample", spec_file(SMALL), folder / "rows", "--rows", 8),
        ("surrogate", "train", tmp_path, "-o", folder / "net.eqx"),
    ):
        assert f"no folder '{folder}'" in fail(cli, *command)
        assert not folder.exists()


@pytest.mark.parametrize("option", [("--pe", "pow2:1-64"), ("--batch", "8k"), ("--pe", "1e1,1k")])
def test_numbers_are_read_as_people_write_them(option, cli):
    assert cli("best", *ASK, "--pe", 8, *option)[0] in (0, 4)


def test_thousands_have_no_comma(cli):
    assert "without a comma" in fail(cli, "best", *ASK, "--pe", "1,024")


def test_the_spec_stands_first(tmp_path, cli):
    folder = tmp_path / ("a long name " * 12)  # a command to copy is never cut short
    folder.mkdir()
    spec, store = folder / "week.yaml", folder / "out.zarr"
    err = fail(cli, "sweep", store, spec)
    assert f"paradl sweep {quote(str(spec))} {quote(str(store))}" in err
    assert list(folder.iterdir()) == []


def test_an_unknown_model_may_be_written(cli):
    err = fail(cli, "best", "--model", "mobilenetv3", "--dataset", "imagenet")
    assert "'mobilenet_v2'" in err
    assert "docs/your-model.md" in err


@pytest.mark.parametrize("model", ["net.onnx", "./net.onnx", "net.pt"])
def test_models_of_frameworks_are_written_anew(model, cli):
    err = fail(cli, "predict", *ASK[2:], "--model", model, "--pe", 8, "--batch", 32)
    assert "docs/your-model.md" in err


@pytest.mark.parametrize(
    "command",
    [(), ("sweep",), ("surrogate", "train"), ("plot", "map"), ("hybrid",), ("compare",)],
)
def test_help_and_quiet_have_short_names(cli, command):
    code, out, _ = cli(*command, "-h")
    assert (code, out) == (0, cli(*command, "--help")[1])
    assert "-h, --help" in out
    assert not command or "-q, --quiet" in out or command[0] == "plot"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("import machine run.log --like abcd -o mine.yaml", "paradl: --like: unknown system"),
        ("probe model resnet --dataset imagenet --device d -o mine.yaml", "paradl: unknown model"),
        ("import check resnet part.safetensors", "paradl: unknown model"),
    ],
)
def test_an_unknown_name_stands_behind_its_own_option(command, message, cli):
    assert fail(cli, *command.split()).startswith(message)


NET = ("--model", "alexnet", "--dataset", "imagenet")
ONE = (*NET, "--strategy", "data", "--pe", 8, "--batch", 32)
SPACE = (*NET, "--strategy", "data,filter", "--pe", "4,8", "--batch", 32)
RUNS = Path(__file__).parents[3] / "grids" / "catalogue" / "measured" / "abci.csv"


@pytest.mark.parametrize(
    "command",
    [
        *((verb, *ONE) for verb in ("predict", "explain")),
        *((verb, *SPACE) for verb in ("best", "limits", "pareto", "bottleneck", "sensitivity")),
        ("best", *NET),  # whose numbers of PEs are the machine's
        ("limits", *SPACE, "--crossovers", "pe"),
        ("provision", *SPACE, "--deadline", "1 h", "--epochs", 1),
        ("provision", *SPACE, "--need", "memory_capacity"),
        ("report", *SPACE, "-o", "page.html"),
        ("plot", "map", *SPACE, "-o", "map.png"),
        ("hybrid", *NET, "--batch", 32, "--pe", 8),
        ("hybrid", *NET, "--batch", 32, "--pe", 8, "--speedup", "2=1.5"),  # but not how it scales
        ("place", *NET[1:], "--batch", 32, "--devices", 2),
        ("compare", RUNS),
        ("plot", "accuracy", RUNS, "-o", "accuracy.png"),
        ("calibrate", RUNS, "-o", "mine.yaml"),
    ],
)
def test_no_machine_is_assumed(command, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    err = fail(cli, *command)
    assert err.startswith("paradl: --system: no machine is named")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


ALEXNET: dict[str, Any] = {"model": "alexnet", "dataset": "imagenet", "batch": 32}


@pytest.mark.parametrize(
    "ask",
    [
        lambda: paradl.predict(**ALEXNET, strategy="data", pe=8),
        lambda: paradl.predict(**ALEXNET, strategy="data", pe=[4, 8]),
        lambda: paradl.explain(**ALEXNET, strategy="data", pe=8),
        lambda: paradl.grad(**ALEXNET, strategy="data", pe=8, wrt="inter_bandwidth"),
        lambda: paradl.compute_space(**ALEXNET),
        lambda: paradl.compute_space(**ALEXNET, pe=8),
        lambda: paradl.hybrid(**ALEXNET, pe=8),
        lambda: paradl.hybrid(**ALEXNET, pe=8, speedups={2: 1.5}),
        lambda: paradl.place("alexnet", 2, dataset="imagenet", batch=32),
        lambda: paradl.compare(RUNS),
        lambda: paradl.calibrate(RUNS),
    ],
)
def test_nor_in_python(ask):
    with pytest.raises(InputError, match=r"^system: no machine is named.*paradl list systems"):
        ask()


@pytest.mark.parametrize(("option", "value"), [("--epochs", 0), ("--holds", 0), ("--price", 0.5)])
def test_an_option_without_an_effect_is_refused_whatever_its_value(option, value, cli):
    asked = ("--pe", 4, "--batch", 32, "--need", "inter_bandwidth", "--efficiency", 0.5)
    err = fail(cli, "provision", *ASK, *asked, option, value)
    assert option in err
    assert "--deadline" in err
