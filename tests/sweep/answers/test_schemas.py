"""Answers are what their schemas say: JSON that any reader reads, with keys of stated types."""

import csv
import json
from pathlib import Path

import pytest
import typer
from jsonschema import Draft202012Validator

import paradl
from paradl.grids.library import find
from paradl.sweep.answers.types.facts import holds_numbers
from paradl.sweep.answers.types.schemas import ROWS, build_schemas
from paradl.sweep.cli.main import app
from paradl.sweep.importing.machines import device_times

SCHEMAS = build_schemas()
ROOT = Path(__file__).parents[3]
LABELS = ("--model", "alexnet", "--dataset", "imagenet", "--system", "abci")
SPACE = (*LABELS, "--strategy", "serial,data,pipeline:segments=best", "--pe", "1,4", "--batch", 32)
# Measured epochs of alexnet.
EPOCHS = """model,dataset,target,global_batch,epochs,source
alexnet,imagenet,top1>=0.57,64,60,mine
alexnet,imagenet,top1>=0.57,128,70,mine
alexnet,imagenet,top1>=0.57,256,90,mine
"""
ONE = (*LABELS, "--strategy", "data", "--pe", 4, "--batch", 32)
CELL = ("--sel", "model=alexnet", "--sel", "strategy=data", "--sel", "pe=4", "--sel", "batch=16")
GOAL = ("--need", "inter_bandwidth", "--efficiency", 0.5)


def ask(cli, verb, *arguments):
    """What a verb prints, and what of it is not as its schema has it."""
    words = verb.split()
    command = [word for word in words if not word.startswith("--")]
    shown = [option for option in words if option == "--layers-table"]  # others take a value
    code, out, err = cli(*command, *arguments, *shown, "--format", "json")
    assert code in (0, 4), err
    answer = json.loads(out, parse_constant=pytest.fail)  # no NaN, no Infinity
    validator = Draft202012Validator(SCHEMAS[verb])
    return answer, [
        f"{error.json_path}: {error.message}" for error in validator.iter_errors(answer)
    ]


@pytest.mark.parametrize("verb", SCHEMAS)
def test_a_schema_is_one_and_tells_every_key(verb):
    Draft202012Validator.check_schema(SCHEMAS[verb])
    row = SCHEMAS[verb].get("items", SCHEMAS[verb])
    assert row["additionalProperties"] in (False, ROWS)
    assert set(row["required"]) <= set(row["properties"])
    for key, result in row["properties"].items():
        assert result["description"], key
        assert ("unit" in result) == holds_numbers(result), key


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("best", ()),
        ("best", ("--objective", "cost", "--price", 2, "--across")),
        ("best", ("--objective", "train-time")),
        ("best", ("--why", "--sel", "model=cosmoflow", "--sel", "pe=12", "--sel", "batch=64")),
        ("limits", ()),
        ("limits", ("--objective", "train-time")),
        ("limits --crossovers", ("--crossovers", "pe", "--sel", "batch=8")),
        ("bottleneck", ("--sel", "pe=4")),
        ("provision --deadline", ("--deadline", "1 h", "--epochs", 90, "--price", 2)),
        ("provision --deadline", ("--deadline", "5 h")),
        ("provision --need", ("--need", "batch", "--sel", "pe=4", "--sel", "batch=8")),
        ("provision --need", ("--need", "memory_capacity", "--sel", "pe=4", "--sel", "batch=8")),
        ("pareto", ()),
        ("pareto", ("--against", "memory", "--objective", "train-time")),
        ("pareto", ("--against", "cost", "--price", 2)),
        ("best --worst-case", ("--worst-case", "system")),
        ("best --worst-case", ("--worst-case", "inter_bandwidth")),
        ("status", ()),
        ("status", ("--verify",)),
    ],
)
def test_a_store_of_many_kinds(verb, arguments, mixed_url, cli):
    answer, errors = ask(cli, verb, mixed_url, *arguments)
    assert answer
    assert not errors


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("best", SPACE),
        ("limits", SPACE),
        ("limits --crossovers", (*SPACE, "--crossovers", "pe")),
        ("limits --crossovers", (*SPACE, "--crossovers", "batch")),
        ("bottleneck", SPACE),
        ("provision --deadline", (*SPACE, "--deadline", "1 h", "--epochs", 90)),
        ("provision --need", (*SPACE, *GOAL)),
        ("pareto", SPACE),
    ],
)
def test_a_space_of_the_machine_oracle(verb, arguments, cli):
    """With percentiles, probabilities and losers that are explained."""
    answer, errors = ask(cli, verb, *arguments)
    assert answer
    assert not errors


@pytest.mark.parametrize("verb", ["best", "limits", "predict"])
def test_a_training(verb, tmp_path, cli):
    path = tmp_path / "epochs.csv"
    path.write_text(EPOCHS)
    objective = () if verb == "predict" else ("--objective", "train-time")
    answer, errors = ask(cli, verb, *ONE, "--convergence", path, *objective)
    row = answer if verb == "predict" else answer[0]
    assert {"train_time", "soonest_time"} & set(row)
    assert not errors


def test_sensitivities(small_url, cli):
    answer, errors = ask(cli, "sensitivity", small_url, *CELL)
    assert answer
    assert not errors


@pytest.mark.parametrize("verb", ["predict", "explain", "explain --layers-table"])
@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("--oracle", "paper"),
        ("--strategy", "pipeline:segments=4"),
        ("--strategy", "data+filter:group=3"),
        ("--model", "cosmoflow"),  # samples that do not fit
        ("--strategy", "serial"),  # too many PEs
    ],
)
def test_one_configuration(verb, changes, cli):
    answer, errors = ask(cli, verb, *ONE, *changes)
    assert isinstance(answer, dict | list)
    assert not errors


def test_two_cubes(small_url, small, tmp_path, cli):
    same, errors = ask(cli, "diff", small_url, small_url)
    assert same["same"]
    assert not errors
    small["axes"] |= {"model": ["alexnet"], "dataset": ["imagenet"], "batch": [16, 64]}
    paradl.run(small | {"parameters": {"inter_bandwidth": 1e9}}, tmp_path / "other.zarr")
    other, errors = ask(cli, "diff", small_url, tmp_path / "other.zarr")
    assert other["axes"]
    assert any(row["where"] for row in other["answers"])
    assert not errors


# Times beyond all measure among them.
RESNET = {"model": "resnet50", "dataset": "imagenet-226", "samples_per_replica": 32}
RUNS = [
    RESNET | {"strategy": "data", "p": 16, "total_s": 0.2, "comp_s": 0.1, "comm_s": 0.1},
    RESNET | {"strategy": "data", "p": 16, "total_s": 0.2, "comp_s": 0, "comm_s": 0},
    RESNET | {"strategy": "data", "p": 16, "total_s": 9},
    RESNET | {"strategy": "filter", "p": 4, "total_s": 1e9},
    RESNET | {"strategy": "serial", "p": 8, "total_s": 0.2},  # cannot be
    RESNET | {"strategy": "serial", "p": 1, "total_s": 1e-12, "comp_s": 1e-12},
]


@pytest.mark.parametrize("calibration", ["abci", "none"])
def test_measured_runs(calibration, tmp_path, cli):
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as file:
        lines = csv.DictWriter(file, list(RUNS[0]))
        lines.writeheader()
        lines.writerows(RUNS)
    answer, errors = ask(cli, "compare", path, "--system", "abci", "--calibration", calibration)
    assert len(answer["rows"]) == len(RUNS)
    assert not errors


@pytest.mark.parametrize("kind", ["models", "datasets", "systems", "strategies", "parameters"])
def test_the_catalogue(kind, cli):
    answer, errors = ask(cli, f"list {kind}")
    assert answer
    assert not errors


HYBRID = (
    *("--model", "resnet50", "--dataset", "imagenet", "--system", "abci"),
    *("--batch", 32, "--pe", "64,1024"),
)


@pytest.mark.parametrize(
    "options",
    [
        ("--strategy", "data+spatial:group=2"),
        ("--speedup", "2=1.6", "--scaling-efficiency", 0.9),
        ("--strategy", "data+filter:group=64", "--set", "memory_capacity=2 GB"),
    ],
)
def test_hybrids(options, cli):
    answer, errors = ask(cli, "hybrid", *HYBRID, *options)
    assert answer["rows"]
    assert not errors


@pytest.mark.parametrize("options", [("--devices", 2, "--micro-batches", 2), ("--devices", 1)])
def test_placements(options, cli):
    given = ("alexnet", "--dataset", "imagenet", "--system", "abci", "--batch", 4096)
    answer, errors = ask(cli, "place", *given, *options)
    assert "feasible" in answer
    assert not errors


@pytest.mark.parametrize("verb", ["best", "limits", "pareto", "bottleneck", "sensitivity"])
def test_nothing_feasible_is_an_answer_too(verb, cli):
    answer, errors = ask(cli, verb, *LABELS, "--strategy", "serial", "--pe", 4, "--batch", 32)
    assert not answer or verb in ("best", "limits")
    assert not errors


LAYOUT = ("--model", "llama2_7b", "--pe", 8, "--system", "dgx-h100", "--global-batch", 64)
WORDS = ("--strategy", "tp2 pp2 dp2 mb1")


@pytest.mark.parametrize(
    "words",
    [
        ("best",),
        ("best", "--tokens", "1G", "--deadline", "60 d"),
        ("bottleneck",),
        ("limits",),
        ("sensitivity",),
        ("pareto", "--against", "memory"),
        ("predict", *WORDS),
        ("explain", *WORDS, "--launch", "megatron"),
    ],
)
def test_layouts(words, cli):
    answer, errors = ask(cli, *words, *LAYOUT)
    assert answer
    assert not errors


def test_a_calibration():
    """What is shipped is what `calibrate` printed (tests/sweep/calibration/test_calibrate.py)."""
    answer = json.loads(json.dumps(find("calibration", "abci", Path()).definition()))
    validator = Draft202012Validator(SCHEMAS["calibrate"])
    assert not [error.message for error in validator.iter_errors(answer)]


def test_every_command_that_prints_json_has_a_schema():
    def list_commands(command, words):
        for name, inner in getattr(command, "commands", {}).items():
            yield from list_commands(inner, [*words, name])
        if any("--format" in parameter.opts for parameter in command.params):
            yield " ".join(words)

    verbs = [*list_commands(typer.main.get_group(app), [])]
    assert {*verbs} == {verb.partition(" --")[0] for verb in SCHEMAS}


@pytest.fixture
def quick(monkeypatch):
    for name, value in (("PATIENCE", 0.0), ("SIZES", (32,)), ("CHANNELS", (16,))):
        monkeypatch.setattr(device_times, name, value)


def test_a_probe(quick, tmp_path, cli):
    _, errors = ask(cli, "probe machine")
    assert not errors
    path = tmp_path / "net.yaml"
    path.write_text("name: net\nrank: 2\nlayers: [{fc: targets}]\n")
    options = ("--dataset", "cifar10", "--device", "h100", "-o", tmp_path / "timed.yaml")
    rows, errors = ask(cli, "probe model", path, *options)
    assert len(rows) == 1
    assert not errors


def test_an_imported_machine(tmp_path, cli):
    logs = sorted((ROOT / "docs" / "files" / "your-machine").glob("*.txt"))
    options = ("--like", "dgx-h100", "-o", tmp_path / "mine.yaml")
    answer, errors = ask(cli, "import machine", *logs, *options)
    assert answer["rows"]
    assert not errors


def test_an_imported_network(tmp_path, cli):
    onnx_files = pytest.importorskip("onnx_files")
    path = tmp_path / "net.onnx"
    path.write_bytes(onnx_files.make_onnx("plain").SerializeToString())
    answer, errors = ask(cli, "import model", path, "-o", tmp_path / "net.yaml")
    assert answer["parameters"]
    assert not errors


def test_a_checkpoint(tmp_path, cli):
    ((model, *_), _) = ask(cli, "list models", "alexnet")
    header = json.dumps({"all": {"shape": [model["parameters"]]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    checked, errors = ask(cli, "import check", "alexnet", path)
    assert checked["checkpoint"] == model["parameters"]
    assert not errors


def test_a_key_that_no_schema_has_is_found(mixed_url, cli):
    answer, _ = ask(cli, "best", mixed_url)
    validator = Draft202012Validator(SCHEMAS["best"])
    assert not validator.is_valid([answer[0] | {"mine": 1.5}])
    assert not validator.is_valid([{key: answer[0][key] for key in answer[0] if key != "pe"}])
    assert not validator.is_valid([answer[0] | {"pe": "4"}])


def test_the_command_prints_all_or_one(cli):
    code, out, err = cli("schema", "--answers")
    assert (code, err) == (0, "")
    assert json.loads(out) == SCHEMAS
    for query in (("best",), ("--answers", "best")):
        assert json.loads(cli("schema", *query)[1]) == SCHEMAS["best"]


@pytest.mark.parametrize("query", [("bset",), ("--answers", "bset")])
def test_an_unknown_verb(query, cli):
    code, out, err = cli("schema", *query)
    assert (code, out) == (2, "")
    assert "did you mean 'best'?" in err
    assert len(err.splitlines()) == 1
