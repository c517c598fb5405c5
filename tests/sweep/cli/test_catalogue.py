"""`paradl systems NAME --yaml`: a machine as a file to change into one's own."""

import json

import pytest

from paradl.grids.entries.names import list_names
from paradl.grids.library import find


@pytest.mark.parametrize("name", [*list_names("system"), "dgx-h100:precision=tf32"])
def test_a_machine_as_a_file_reads_back(name, tmp_path, cli):
    code, out, err = cli("list", "systems", name, "--yaml")
    assert (code, err) == (0, "")
    (tmp_path / "mine.yaml").write_text(out)
    system, again = find("system", name, tmp_path), find("system", "mine.yaml", tmp_path)
    assert again == system
    assert again.definition() == system.definition()


def test_a_file_that_was_changed_is_a_machine(tmp_path, cli):
    _, out, _ = cli("list", "systems", "dgx-a100", "--yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(
        out.replace("name: dgx-a100", "name: mine").replace("# input_rate", "input_rate")
    )
    assert find("system", str(path), tmp_path).input_rate == 20000
    options = (
        "--model",
        "resnet50",
        "--dataset",
        "imagenet",
        "--strategy",
        "data",
        "--pe",
        8,
    )
    settings = ("--batch", 32, "--system", f"{path}:precision=tf32", "--format", "json")
    code, out, _ = cli("predict", *options, *settings)
    assert code == 0
    assert json.loads(out)["system"] == "mine:precision=tf32"


CONV = "{conv: {filters: 8, kernel: 3, groups: 3, bias: false}}"


def write_model(path, *lines):
    path.write_text("\n".join(("name: mine", "rank: 2", *lines)))
    return path


def test_a_network_of_one_s_own_is_counted(tmp_path, cli):
    steps = "layers: [{conv: {filters: 9, kernel: 3, groups: 3}}, {fc: targets}]"
    path = write_model(tmp_path / "mine.yaml", "customary: cifar10", steps)
    (row,) = json.loads(cli("list", "models", path, "--format", "json")[1])
    assert row["parameters"] == 9 * 9 + 9 + 9 * 30 * 30 * 10 + 10
    assert row["macs"] == 9 * 9 * 30 * 30 + 9 * 30 * 30 * 10


GPT = "{name: gpt, blocks: 12, features: 768, heads: 12, vocabulary: 50257, positions: 1024}"
FILES = {
    "config.json": json.dumps(
        {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12}
        | {"n_positions": 1024, "vocab_size": 50257}
    ),
    "mine.yaml": f"name: mine\nrank: 1\ncustomary: pile\nfamily: {GPT}\n",
    "longer.yaml": f"name: mine\nrank: 1\ncustomary: pile:length=4096\nfamily: {GPT}\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_text_is_cut_to_the_length_of_a_network(name, tmp_path, cli):
    """GPT-2 small: `best` takes the same length."""
    (tmp_path / name).write_text(FILES[name])
    code, out, _ = cli("list", "models", tmp_path / name, "--format", "json")
    (row,) = json.loads(out)
    assert (code, row["parameters"], row["dataset"]) == (0, 124_439_808, "pile:length=1024")
    one = ("--model", tmp_path / name, "--system", "abci", "--pe", 8, "--format", "json")
    ranked = json.loads(cli("best", *one, "--global-batch", 8)[1])
    assert {row["dataset"] for row in ranked} == {"pile:length=1024"}
    for command in ("predict", "explain"):
        options = ("--dataset", "pile", "--strategy", "data", "--batch", 8)
        code, out, err = cli(command, *one, *options)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "pile:length=1024" in err


@pytest.mark.parametrize(("rank", "example"), [(1, "pile"), (2, "imagenet"), (3, "cosmoflow-256")])
def test_a_network_is_counted_for_the_usual_data_set_of_its_rank(rank, example, tmp_path, cli):
    """Also when it is compared with a checkpoint: an import names none for samples of its own."""
    path, stored = tmp_path / "mine.yaml", tmp_path / "part.safetensors"
    step = "relu" if rank == 1 else "fc: targets"
    path.write_text(f"name: mine\nrank: {rank}\nlayers: [{step}]\n")
    code, out, err = cli("list", "models", path, "--json")
    assert code == 0, err
    (row,) = json.loads(out)
    assert row["dataset"].startswith(example)
    header = json.dumps({"all": {"shape": [row["parameters"]]}}).encode()
    stored.write_bytes(len(header).to_bytes(8, "little") + header)
    assert cli("import", "check", path, stored)[0] == 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("customary: cosmoflow-128", "layers: [relu]"), "2 spatial dimensions"),
        (("customary: imagenett", "layers: [relu]"), "'imagenet'"),
        (("customary: imagenet", f"layers: [{CONV}]"), "3 channels"),
        (("customary: imagenet", "layers: [geluu]"), "layers.0.geluu: "),
    ],
)
def test_a_network_that_cannot_be_counted(lines, message, tmp_path, cli):
    code, out, err = cli("list", "models", write_model(tmp_path / "mine.yaml", *lines))
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_the_schema_of_a_model_knows_its_kinds(cli):
    code, out, _ = cli("schema", "model")
    assert code == 0
    assert "transposed_conv" in json.loads(out)["$defs"]["Step"]["anyOf"][1]["properties"]


def test_no_such_schema(cli):
    code, out, err = cli("schema", "modell")
    assert (code, out) == (2, "")
    assert "modell" in err


def test_one_machine_is_listed(cli):
    (row,) = json.loads(cli("list", "systems", "abci", "--format", "json")[1])
    assert row["system"] == "abci"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--yaml",), "--yaml: "),
        (("abci", "--yaml", "--format", "json"), "--yaml: "),
        (("abcy", "--yaml"), "'abci'"),
        (("abcy",), "'abci'"),
        (("abci:precision=tf32",), "tf32"),
    ],
)
def test_mistakes(arguments, message, cli):
    code, out, err = cli("list", "systems", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("paradl: ")
    assert message in err
