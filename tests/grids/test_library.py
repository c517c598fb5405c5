"""Look-up of entries by name, by path, and by definition."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from paradl.grids.entries.names import CATALOGUE, Kind, list_names
from paradl.grids.library import find, look_up, look_up_datasets
from paradl.grids.models.architecture import Architecture
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.yamlfile import join_keys

ENTRIES = [(kind, name) for kind in get_args(Kind) for name in list_names(kind)]


def test_names() -> None:
    assert {"alexnet", "gnmt_v2", "llama3_8b", "vit_l_16"} <= set(list_names("model"))
    assert "imagenet-226" in list_names("dataset")
    assert {"abci", "dgx-h100", "gb200-nvl72", "tpu-v5p"} <= set(list_names("system"))


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_a_definition_finds_the_same_entry(kind: Kind, name: str) -> None:
    entry = find(kind, name, Path())
    definition = json.loads(json.dumps(entry.definition()))
    assert find(kind, definition, Path("elsewhere")) == entry


def test_paths_are_relative_to_the_base(tmp_path: Path) -> None:
    text = "name: mine\nrank: 2\nlayers: [relu]\n"
    (tmp_path / "mine.yaml").write_text(text)
    for reference in ("mine.yaml", "./mine.yaml", str(tmp_path / "mine.yaml")):
        model = find("model", reference, tmp_path)
        assert isinstance(model, Architecture)
        assert model.name == "mine"


def test_an_unknown_name() -> None:
    with pytest.raises(InputError) as error:
        find("model", "resnet5", Path())
    assert str(error.value).startswith("unknown model 'resnet5'; did you mean 'resnet50'?")


def test_a_missing_data_set_is_suggested_for_the_network() -> None:
    """Its own, and if it names none, one of its rank."""
    (own,) = look_up("model", ("unet3d",), Path(), join_keys)
    for model, dataset in ((own, "kits19"), (own.model_copy(update={"customary": None}), "cosmo")):
        with pytest.raises(InputError, match=f"such as 'dataset: {dataset}"):
            look_up_datasets(None, (model,), Path(), join_keys)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no such file; check the path"):
        find("system", "./abci.yaml", Path("nowhere"))


# A reference, with the name, precision and peak of its system.
SETTINGS = [
    ("dgx-h100", "dgx-h100", "amp", 989e12),
    ("dgx-h100:precision=tf32", "dgx-h100:precision=tf32", "tf32", 494.5e12),
    ("dgx-h100:precision=amp", "dgx-h100", "amp", 989e12),  # its own
    ("abci:precision=amp", "abci:precision=amp", "amp", 125e12),
]


@pytest.mark.parametrize(("reference", "label", "precision", "peak"), SETTINGS)
def test_settings_of_a_system(reference: str, label: str, precision: str, peak: float) -> None:
    system = find("system", reference, Path())
    assert (system.name, system.precision, system.peak) == (label, precision, peak)
    definition = json.loads(json.dumps(system.definition()))
    assert definition["precision"] == precision
    assert find("system", definition, Path("elsewhere")) == system


@pytest.mark.parametrize(
    ("reference", "label", "software", "precision"),
    [
        ("abci:software=plain", "abci", "plain", "fp32"),  # its own
        ("abci:software=ddp", "abci:software=ddp", "ddp", "fp32"),
        ("abci:precision=amp,software=ddp", "abci:precision=amp,software=ddp", "ddp", "amp"),
        ("abci:software=ddp,precision=amp", "abci:precision=amp,software=ddp", "ddp", "amp"),
        ("dgx-a100:software=ddp", "dgx-a100", "ddp", "amp"),
    ],
)
def test_software_of_a_system(reference: str, label: str, software: str, precision: str) -> None:
    system = find("system", reference, Path())
    assert (system.name, system.software, system.precision) == (label, software, precision)
    assert system == find("system", label, Path())
    assert (system == find("system", system.machine, Path())) == (label == system.machine)
    definition = json.loads(json.dumps(system.definition()))
    assert find("system", definition, Path("elsewhere")) == system


@pytest.mark.parametrize(
    ("reference", "label", "memory"),
    [
        ("dgx-h100:memory=32 GB", "dgx-h100:memory=32 GB", 32e9),
        ("dgx-h100:memory=32GB", "dgx-h100:memory=32 GB", 32e9),
        ("dgx-h100:memory=0.032 TB", "dgx-h100:memory=32 GB", 32e9),
        ("dgx-h100:memory=32 GiB", "dgx-h100:memory=34.359738368 GB", 2**35),
        ("dgx-h100:memory=79.1 GiB", "dgx-h100", 79.1 * 2**30),  # its own
        ("abci:memory=16 GB,software=ddp", "abci:software=ddp", 16e9),
        (
            "dgx-h100:memory=32 GB,precision=fp8,software=fsdp",
            "dgx-h100:precision=fp8,software=fsdp,memory=32 GB",
            32e9,
        ),
    ],
)
def test_memory_of_a_system(reference: str, label: str, memory: float) -> None:
    system = find("system", reference, Path())
    assert system.name == label
    assert system.pe.memory_capacity == pytest.approx(memory)
    assert system == find("system", label, Path())
    definition = json.loads(json.dumps(system.definition()))
    assert find("system", definition, Path("elsewhere")) == system
    usual = find("system", system.machine, Path())
    changes = {"memory_capacity": system.pe.memory_capacity}
    assert system.pe == usual.pe.model_copy(update=changes)


@pytest.mark.parametrize("name", ["mine.yaml", "a:b.yaml", "a:b=c/mine.yml"])
def test_settings_behind_a_path(name: str, tmp_path: Path) -> None:
    """A path may contain colons."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    text = (CATALOGUE / "systems" / "dgx-a100.yaml").read_text()
    path.write_text(text.replace("name: dgx-a100", "name: mine"))
    for start in (name, str(path)):
        assert find("system", start, tmp_path).name == "mine"
        other = find("system", f"{start}:precision=bf16", tmp_path)
        assert (other.name, other.precision) == ("mine:precision=bf16", "bf16")
        assert find("system", f"{start}:memory=32.5 GB", tmp_path).pe.memory_capacity == 32.5e9


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("dgx-h100:precision=tf23", "unknown precision 'tf23'; did you mean 'tf32'?"),
        ("dgx-h100:precison=tf32", "unknown setting 'precison'; did you mean 'precision'"),
        ("dgx-h100:tf32", "expected key=value once each, got 'tf32'; write it like 'dgx-h100:prec"),
        ("abci:software=dpp", "unknown software 'dpp'; did you mean 'ddp'? known: "),
        ("abci:precision=amp,precision=amp", "expected key=value once each"),
        ("abci:precision=bf16", "V100 SXM2 16 GB has no peak for bf16, only for fp32, amp; "),
        ("abcy:precision=amp", "unknown system 'abcy'; did you mean 'abci'?"),
        ("abci:memory=32", "abci:memory=32: memory: "),
        ("abci:memory=32000000000", "expected a unit"),
        ("abci:memory=32 Gb", "did you mean '32 GB'?"),
        ("abci:memory=32 TFLOP", "abci:memory=32 TFLOP: memory: "),
        ("abci:memory=", "abci:memory=: memory: "),
        ("abci:memory=0 GB", "abci:memory=0 GB: pe.memory_capacity: "),
        ("abci:memory=-1 GB", "abci:memory=-1 GB: pe.memory_capacity: "),
        ("abci:memory=1e999 GB", "abci:memory=1e999 GB: memory: "),
        ("abci:memory=1 GB,memory=2 GB", "expected key=value once each"),
        ("abci:vram=1 GB", "unknown setting 'vram'"),
        ("nowhere.yaml:precision=amp", "nowhere.yaml:"),
        (f"abci:{'x' * 10**5}=1", "unknown setting 'xxx"),
    ],
)
def test_settings_that_are_none(reference: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        find("system", reference, Path())
    assert message in str(error.value)
    assert len(str(error.value)) <= 900


@pytest.mark.parametrize(
    "reference",
    [
        "imagenet:precision=amp",
        "imagenet:length=8",
        "pile:length=0",
        "pile:length=2.5",
    ],
)
def test_a_setting_that_a_data_set_does_not_have(reference: str) -> None:
    with pytest.raises(InputError, match="length"):
        find("dataset", reference, Path())


def test_a_text_is_cut_into_sequences() -> None:
    text = find("dataset", "pile:length=8192", Path())
    assert (text.name, text.shape) == ("pile:length=8192", (1, 8192))
    assert text.samples == 300_000_000_000 // 8192
    assert find("dataset", text.definition(), Path()) == text
    assert find("dataset", "pile:length=2048", Path()) == find("dataset", "pile", Path())


def test_settings_with_blanks_or_none() -> None:
    plain = find("system", "dgx-h100", Path())
    assert find("system", "dgx-h100:", Path()) == plain
    assert find("system", "dgx-h100: precision = tf32 ,", Path()).precision == "tf32"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("tokens: .inf", "tokens"),
        ("tokens: 1e6\nlength: 0", "length"),
        ("tokens: 1e6\nlength: x", "length"),
        ("tokens: 1e6\nsamples: 10", "samples"),
        ("samples: 10\nshape: [3, 8, 8]\ntargets: 2\nlength: 8", "length"),
    ],
)
def test_a_text_s_mistakes_are_of_its_own_keys(tmp_path: Path, line: str, key: str) -> None:
    path = tmp_path / "text.yaml"
    path.write_text(f"name: text\n{line}\n")
    with pytest.raises(InputError) as error:
        find("dataset", str(path), Path())
    assert f"{key}: " in str(error.value)
    assert str(error.value).count(str(path)) == 1


def test_a_mistake_in_a_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nrank: 2\nlayers:\n- relu\n- cnov: {filters: 3, kernel: 3}\n")
    with pytest.raises(InputError) as error:
        find("model", str(path), Path())
    assert str(error.value).startswith(
        f"{path}:5: layers.1.cnov: unknown key; did you mean 'conv'?"
    )


def test_a_mistake_in_a_definition_has_its_name() -> None:
    with pytest.raises(InputError, match=r"^dataset mine: samples: this key is missing$"):
        find("dataset", {"name": "mine", "shape": [3, 8, 8], "targets": 2}, Path())


@pytest.mark.parametrize("kind", get_args(Kind))
def test_what_is_no_name_is_shown_shortly(kind: Kind) -> None:
    references: list[Any] = ["x" * 10**6, {"name": "x" * 10**6}, {"name": [[]] * 10**5}, {}]
    for reference in references:
        with pytest.raises(InputError) as error:
            find(kind, reference, Path())
        assert len(str(error.value)) < 1000


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_file_of_another_kind_is_named_for_what_it_is(kind: Kind, tmp_path: Path) -> None:
    first = {other: name for other, name in reversed(ENTRIES) if other != kind}
    files = {other: CATALOGUE / f"{other}s" / f"{name}.yaml" for other, name in first.items()}
    files["spec"] = tmp_path / "spec.yaml"
    files["spec"].write_text("axes: {model: vgg16}\n")
    for other, file in files.items():
        with pytest.raises(InputError, match=f"expected a {kind}'s file, got a {other}'s"):
            find(kind, str(file), Path())


@pytest.mark.parametrize("kind", ["model", "system"])
@pytest.mark.parametrize("reference", [7, None, ["abci"]])
def test_what_is_no_name_is_refused(kind: Any, reference: Any) -> None:
    with pytest.raises(InputError, match="expected a name"):
        find(kind, reference, Path())
