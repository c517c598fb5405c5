"""Specs: what users write, and where mistakes are reported."""

from pathlib import Path
from typing import get_args

import pytest

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.quantity import Parameter
from paradl.grids.entries.strategy_words import TABLE_III
from paradl.grids.outputs import MAIN_OUTPUTS
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import Choices, Spec, read_spec, validate_spec

SPEC = """\
name: interconnect study
axes:
  model: [resnet50, ./mine.yaml]
  dataset: imagenet
  system: abci
  strategy: [data, "data+filter:group=8"]
  pe: {pow2: [1, 64]}
  batch: 32
  phi: [1, 2]
  inter_bandwidth: {geomspace: ["1 GB/s", "100 GB/s", 3]}
parameters:
  gamma: 0.7
  intra_latency: 9 us
outputs: [comp_time, limit]
oracle: paper
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "spec.yaml"


def message(file: Path, old: str, new: str) -> str:
    """Return the message for `new` in place of `old`, without the path."""
    assert SPEC.count(old) == 1
    file.write_text(SPEC.replace(old, new))
    with pytest.raises(InputError) as error:
        read_spec(file)
    return str(error.value).replace(str(file), "spec.yaml")


def test_a_spec(file: Path) -> None:
    file.write_text(SPEC)
    spec, document = read_spec(file)
    assert spec.axes.model == ("resnet50", "./mine.yaml")
    assert (spec.axes.dataset, spec.axes.system) == (("imagenet",), ("abci",))
    assert spec.parameters == {"gamma": 0.7, "intra_latency": 9e-6}
    assert spec.outputs == ("comp_time", "limit")
    assert document.where(("axes", "pe")) == f"{file}:7"


def test_numeric_axes_have_one_order_whatever_the_users(file: Path) -> None:
    file.write_text(SPEC)
    numeric = read_spec(file)[0].axes.numeric
    assert list(numeric) == ["pe", "batch", "inter_bandwidth", "phi"]
    assert numeric["inter_bandwidth"].values == pytest.approx([1e9, 1e10, 1e11])


def test_what_is_not_written_has_a_default() -> None:
    axes = {"model": "vgg16", "system": "abci", "pe": 1, "batch": 1}
    spec = Spec.model_validate({"oracle": "paper", "axes": axes})
    assert spec.axes.strategy == TABLE_III
    assert (spec.axes.dataset, spec.outputs) == (None, MAIN_OUTPUTS)
    assert (spec.scaling, spec.times, spec.collectives) == ("weak", "measured", "auto")


def spec_of(axes: dict[str, object], **keys: object) -> Spec:
    usual = {"model": "vgg16", "system": "abci", "pe": 1, "batch": 1}
    return validate_spec({"oracle": "paper", "axes": usual | axes, **keys}, "the spec")


@pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=lambda parameter: parameter.name)
def test_every_parameter_is_an_axis_or_fixed(parameter: Parameter) -> None:
    """Following the table: a new row there is a key of every spec."""
    name, number = parameter.name, min(1.0, parameter.high)
    value = parameter.write(number)
    oracle = parameter.oracle or "paper"
    assert spec_of({name: value}, oracle=oracle).axes.numeric[name].values.tolist() == [number]
    if parameter.free:
        fixed = spec_of({}, parameters={name: value}, oracle=oracle)
        assert fixed.parameters == {name: number}
    else:
        with pytest.raises(InputError, match=f"'{name}' is always an axis; write it under 'axes'"):
            spec_of({}, parameters={name: value})


WORDS = [
    (name, word)
    for name, field in Choices.model_fields.items()
    for word in get_args(field.annotation)
]


@pytest.mark.parametrize(("name", "word"), WORDS)
def test_every_choice_is_a_key(name: str, word: str) -> None:
    # Table III has no recomputation and no two-level collective; "best" is its own.
    of_machine = name == "recompute" or word in ("two-level", "auto")
    oracle = "machine" if of_machine else "paper"
    assert getattr(spec_of({}, **{"oracle": oracle, name: word}), name) == word


@pytest.mark.parametrize("name", ["gamma", "delta", "half_channels", "layer_overhead"])
def test_what_the_oracle_does_not_know_is_refused(name: str) -> None:
    """Both as an axis and fixed; the message says what to write instead."""
    owner = PARAMETERS[name].oracle
    other = "machine" if owner == "paper" else "paper"
    refused = f"'{name}' is no parameter of 'oracle: {other}'; .*oracle: {owner}'"
    with pytest.raises(InputError, match=refused):
        spec_of({name: 1.0}, oracle=other)
    with pytest.raises(InputError, match=refused):
        spec_of({}, parameters={name: 1.0}, oracle=other)


@pytest.mark.parametrize(
    ("oracle", "choice", "instead"),
    [
        ("paper", {"recompute": "full"}, "write 'oracle: machine'"),
        ("paper", {"collectives": "two-level"}, "write 'allreduce: hierarchical', or 'oracle: ma"),
        ("machine", {"collectives": "best"}, "write 'collectives: auto', or 'oracle: paper'"),
        ("machine", {"allreduce": "hierarchical"}, "write 'collectives: two-level', or 'oracle: p"),
    ],
)
def test_a_choice_of_the_other_oracle_is_refused(oracle, choice, instead) -> None:
    ((name, word),) = choice.items()
    refused = f"the spec: '{name}: {word}' is no choice of 'oracle: {oracle}'; {instead}"
    with pytest.raises(InputError, match=refused):
        spec_of({}, oracle=oracle, **choice)


@pytest.mark.parametrize("name", Choices.model_fields)
def test_a_choice_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"the spec: {name}: expected '.*got 'other'"):
        spec_of({}, **{name: "other"})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  phi: [1", "  phy: [1", "spec.yaml:9: axes.phy:"),
        ("name: inter", "nmae: inter", "spec.yaml:1: nmae:"),
        ("  batch: 32\n", "", "spec.yaml:2: axes.batch:"),
        ("pow2: [1", "pow: [1", "spec.yaml:7: axes.pe:"),
        ("[1, 64]", "[64, 1]", "spec.yaml:7: axes.pe:"),
        ("batch: 32", "batch: true", "spec.yaml:8: axes.batch:"),
        ("[1, 2]", "[1, 0.5]", "spec.yaml:9: axes.phi:"),
        ('"100 GB/s"', '"100 GB"', "spec.yaml:10: axes.inter_bandwidth:"),
        ("[data,", "[dta,", "spec.yaml:6: axes.strategy.0:"),
        ("system: abci", "system: []", "spec.yaml:5: axes.system:"),
        ("system: abci", "system: ", "spec.yaml:5: axes.system.0:"),
        ("[comp_time", "[comp", "spec.yaml:14: outputs:"),
        ("gamma: 0.7", "gamma: 7", "spec.yaml:11: parameters: gamma:"),
        ('"1 GB/s"', "1", "spec.yaml:10: axes.inter_bandwidth: 1 B/s"),
        ("gamma: 0.7", "pe: 4", "spec.yaml:11: parameters: 'pe'"),
        ("9 us", "9 GB", "spec.yaml:11: parameters: intra_latency:"),
        ("outputs:", "scaling: week\noutputs:", "spec.yaml:14: scaling:"),
    ],
)
def test_mistakes_have_their_line(file: Path, old: str, new: str, expected: str) -> None:
    assert message(file, old, new).startswith(expected)


def test_parameters_that_are_no_mapping() -> None:
    axes = {"model": "vgg16", "system": "abci", "pe": 1, "batch": 1}
    with pytest.raises(InputError, match="parameters: expected 'name: value' lines, got 3"):
        validate_spec({"oracle": "paper", "axes": axes, "parameters": 3}, "the spec")


def test_a_mistake_in_plain_data_has_its_source() -> None:
    with pytest.raises(InputError, match=r"^the store's spec: axes: this key is missing$"):
        validate_spec({"name": "empty"}, "the store's spec")


def test_a_spec_that_is_written_down_is_read_again() -> None:
    fixed = {"inter_bandwidth": "25 B/s", "intra_bandwidth": "25 GB/s", "intra_latency": 0}
    axes = {"model": "vgg16", "system": "abci", "pe": 1, "batch": 1}
    spec = validate_spec({"oracle": "paper", "axes": axes, "parameters": fixed}, "the spec")
    plain = spec.model_dump(mode="json", exclude_unset=True)
    assert plain["parameters"] == {
        "inter_bandwidth": "25.0 B/s",
        "intra_bandwidth": 25e9,
        "intra_latency": 0,
    }
    assert validate_spec(plain, "the store's spec") == spec


def test_a_spec_is_frozen() -> None:
    spec = Spec.model_validate(
        {"oracle": "paper", "axes": {"model": "a", "system": "b", "pe": 1, "batch": 1}}
    )
    with pytest.raises(ValueError, match="frozen"):
        spec.name = "other"


def test_its_schema_can_be_published() -> None:
    """Editors use it to complete and check a user's file."""
    schema = Spec.model_json_schema()
    pe = schema["$defs"]["Axes"]["properties"]["pe"]
    assert pe["description"] == "the number of processing elements (PEs) [1]"
    assert {"pe", "batch", "model", "system"} == set(schema["$defs"]["Axes"]["required"])


def test_its_schema_has_the_short_forms() -> None:
    """A name instead of a list, and quantities with units, as in the README."""
    schema = Spec.model_json_schema()
    alone, listed = schema["$defs"]["Axes"]["properties"]["strategy"]["anyOf"]
    assert alone == {"type": "string"}
    assert (listed["type"], listed["items"]) == ("array", {"type": "string"})
    assert (listed["minItems"], listed["maxItems"]) == (1, 1000)
    fixed = schema["properties"]["parameters"]["additionalProperties"]["anyOf"]
    assert fixed == [{"type": "number"}, {"type": "string"}]
    assert {"type": "string"} in schema["properties"]["outputs"]["anyOf"]
