"""Model files with settings: what they expand to, and what is refused."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture, read_architecture
from paradl.grids.models.files.template import __doc__ as page
from paradl.grids.reading.errors import InputError


def read(**parts: Any) -> Architecture:
    """Read the network of a file with these keys."""
    usual = {"name": "net", "rank": 2, "settings": {}}
    return read_architecture(usual | parts, "net.yaml", Path())


def write(layers: list[Any], **parts: Any) -> list[Any]:
    """List the plain steps of a file as words with their settings."""
    definition: Any = read(layers=layers, **parts).definition()
    plain = Architecture.from_definition(definition)
    return [{step.word: step.settings.name} for step in plain.steps]


def loop(times: object, *layers: object, index: str = "i") -> dict[str, Any]:
    return {"repeat": {"times": times, "index": index, "layers": list(layers)}}


def test_the_example_of_the_docstring() -> None:
    assert page
    example = yaml.safe_load(page.split("\n\n")[1])
    example["settings"]["stages"] = [1, 1]
    layers = read(**example, rank=2, name="net").layers_for((3, 32, 32), 10)
    assert layers.names == (
        *("conv1", "batchnorm1", "relu1", "conv2", "batchnorm2", "relu2"),
        *("maxpool1", "conv3", "batchnorm3", "relu3"),
    )
    convolutions = [row for row, kind in enumerate(layers.kinds) if kind == "conv"]
    assert layers.filters[convolutions].tolist() == [64, 64, 128]
    assert layers.kernel[convolutions].tolist() == [[1, 7, 7], [1, 3, 3], [1, 3, 3]]


def test_repetitions_count_from_0() -> None:
    inner = loop("$(i + 1)", {"relu": "relu$i.$j"}, index="j")
    assert write([loop(2, inner)]) == [
        {"relu": "relu0.0"},
        {"relu": "relu1.0"},
        {"relu": "relu1.1"},
    ]


def test_a_quotient_without_a_remainder_is_a_whole_number() -> None:
    assert write([{"relu": "relu$(12 / 4)"}]) == [{"relu": "relu3"}]
    layers = read(layers=[{"fc": "$(12 / 4)"}]).layers_for((3, 8, 8), 10)
    assert layers.filters.tolist() == [3]
    with pytest.raises(InputError, match=r"layers\.0"):
        read(layers=[{"fc": "$(12 / 8)"}])


def test_a_repetition_without_an_index_stays_one_step() -> None:
    """The repetition names its layers itself."""
    steps = [{"repeat": {"times": "$n", "layers": ["relu"]}}]
    layers = read(layers=steps, settings={"n": 2}).layers_for((3, 8, 8), 10)
    assert layers.names == ("repeat1.1.relu1", "repeat1.2.relu1")


def test_every_other_block_is_another() -> None:
    """As in transformers with experts in every n-th block."""
    choice = {"if": "$(i % 2 == 1)", "then": [{"tanh": "expert$i"}], "else": [{"relu": "mlp$i"}]}
    assert write([loop(3, choice)]) == [{"relu": "mlp0"}, {"tanh": "expert1"}, {"relu": "mlp2"}]


def test_what_is_set_holds_behind_a_repetition() -> None:
    steps = [{"set": {"c": 1}}, loop(3, {"set": {"c": "$(2 * c)"}}), {"relu": "relu$c"}]
    assert write(steps) == [{"relu": "relu8"}]


def test_a_word_sees_the_file_s_settings_and_its_own() -> None:
    word = {"settings": {"a": "required", "b": "$(a + n)"}, "layers": [{"relu": "$a.$b.$n"}]}
    steps = [{"set": {"n": 9}}, {"mine": 1}, {"mine": {"a": 2, "b": 0}}]
    parts: Any = {"settings": {"n": 3}, "words": {"mine": word}}
    assert write(steps, **parts) == [{"relu": "1.4.3"}, {"relu": "2.0.3"}]


def test_words_of_steps_may_be_settings() -> None:
    assert write([{"$norm": "first"}, "$norm"], settings={"norm": "batchnorm"}) == [
        {"batchnorm": "first"},
        {"batchnorm": None},
    ]


def test_a_family_of_the_user_s(tmp_path: Path) -> None:
    """A family's layers with the model's settings; the definition needs neither file."""
    family = "settings: {width: required}\nlayers: [{fc: $width}]\n"
    (tmp_path / "mine.yaml").write_text(family)
    (tmp_path / "net.yaml").write_text("name: a\nrank: 2\nfamily: {name: ./mine.yaml, width: 8}\n")
    network = find("model", "./net.yaml", tmp_path)
    plain = Architecture.from_definition({"name": "b", "rank": 2, "layers": [{"fc": 8}]})
    assert network.fingerprint == plain.fingerprint
    assert Architecture.from_definition(network.definition()) == network


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("{name: ./mine.yaml}", "net.yaml:3: family.width:"),
        ("{name: ./mine.yaml, widht: 8}", "net.yaml:3: family.widht:"),
        ("{name: ./mine.yaml, width: 0}", "mine.yaml:2: layers.0.fc.outputs:"),
        ("{name: ./net.yaml}", "net.yaml: layers:"),
        ("{name: ./none.yaml}", "none.yaml:"),
        ("{name: ./mine.yaml, width: 8}\nlayers: [relu]", "net.yaml:"),
        ("{name: ./mine.yaml, width: 8}\nwords: {}", "net.yaml:4: words:"),
    ],
)
def test_a_family_s_mistakes_stand_in_their_file(tmp_path: Path, family: str, message: str) -> None:
    (tmp_path / "mine.yaml").write_text("settings: {width: required}\nlayers: [{fc: $width}]\n")
    (tmp_path / "net.yaml").write_text(f"name: a\nrank: 2\nfamily: {family}\n")
    with pytest.raises(InputError) as error:
        find("model", "./net.yaml", tmp_path)
    assert str(error.value).startswith(f"{tmp_path}/{message}")


def test_a_block_that_is_repeated_is_wrong_once(tmp_path: Path) -> None:
    lines = "name: a\nrank: 2\nsettings: {}\nwords:\n  mine:\n    layers:\n      - rleu\nlayers:\n"
    (tmp_path / "net.yaml").write_text(f"{lines}  - mine\n  - mine\n")
    with pytest.raises(InputError) as error:
        find("model", "./net.yaml", tmp_path)
    assert str(error.value) == (
        f"{tmp_path}/net.yaml:7: words.mine.layers.0.rleu: unknown key; did you mean 'relu'?"
    )


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"relu": "$widht"}], "layers.0.relu:"),
        ([{"fc": "$(width"}], "layers.0.fc:"),
        ([{"fc": "$(1 / 0)"}], "layers.0.fc:"),
        ([{"fc": "$(open('x'))"}], "layers.0.fc:"),
        ([{"fc": "$(width.__class__)"}], "layers.0.fc:"),
        ([{"fc": "$([i for i in 3])"}], "layers.0.fc:"),
        ([{"fc": "$('a' * 9)"}], "layers.0.fc:"),
        ([{"fc": "$(9 ** 9 ** 9)"}], "layers.0.fc:"),
        ([{"fc": f"$({'-' * 300}1)"}], "layers.0.fc:"),
        ([{"if": "yes", "then": []}], "layers.0.if:"),
        ([{"if": True, "than": []}], "layers.0.than:"),
        ([{"if": True, "then": 3}], "layers.0.then:"),
        ([loop("x")], "layers.0.repeat.times:"),
        ([loop(10**9)], "layers.0.repeat.times:"),
        ([{"repeat": {"index": "i", "times": 1}}], "layers.0.repeat.layers:"),
        (["mine"], "layers.0.a:"),
        ([{"mine": {"a": 1, "b": 2}}], "layers.0.mine.b:"),
        ([{"mine": []}], "words.mine.layers.0.fc.outputs:"),
    ],
)
def test_mistakes(steps: list[Any], message: str) -> None:
    word = {"settings": {"a": "required"}, "layers": [{"fc": "$a"}]}
    with pytest.raises(InputError) as error:
        read(layers=steps, settings={"width": 64}, words={"mine": word})
    assert str(error.value).startswith(f"net.yaml: {message}")


@pytest.mark.parametrize("step", [{"fc": "$n"}, {"set": {"n": 1}}, loop(2)])
def test_a_file_without_settings_gets_the_advice(step: Any) -> None:
    with pytest.raises(InputError, match="'settings' at the top of the file"):
        read_architecture({"name": "net", "rank": 2, "layers": [step]}, "net.yaml", Path())


HOSTILE = {
    "repetitions": loop(1000, loop(1000, loop(1000))),
    "plain repetitions": {
        "repeat": {
            "times": 1000,
            "layers": [{"repeat": {"times": 1000, "layers": ["flatten"] * 1000}}],
        }
    },
    "lists": loop(100, {"set": {"a": ["$a", "$a", "$a"]}}),
    "texts": loop(100, {"set": {"t": "$t$t"}}),
    "depths": {"deep": 0},
    "circles": {"circle": 0},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_would_never_end(name: str) -> None:
    words: Any = {
        "deep": {"layers": [{"residual": ["deep"]}]},
        "circle": {"settings": {"n": 0}, "layers": [{"circle": 0}]},
    }
    words["deep"]["settings"] = {"n": 0}
    began = time.monotonic()
    with pytest.raises(InputError) as error:
        read(layers=[HOSTILE[name]], settings={"a": [1, 2], "t": "text"}, words=words).layers_for(
            (3, 8, 8), 10
        )
    assert len(str(error.value)) < 300
    assert time.monotonic() - began < 10


def test_layers_that_stand_inside_themselves() -> None:
    """Values that only Python can create."""
    steps: list[Any] = ["relu"]
    steps.append({"residual": steps})
    with pytest.raises(InputError, match="nested deeper than 100 levels"):
        read(layers=steps)
