"""Sequence layers that groups leave whole are reported, and splitting them is refused."""

import pytest

from paradl.grids.grid import Grid
from paradl.grids.notes import list_warnings
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import Spec

LSTM = {"name": "net", "rank": 1, "layers": [{"lstm": 4}, "softmax"]}
WORDS = {"name": "words", "samples": 100, "shape": [4, 8], "targets": 4}
IMAGES = {"name": "images", "samples": 100, "shape": [3, 8, 8], "targets": 4}
PLAIN = {"name": "plain", "rank": 2, "layers": [{"conv": {"filters": 4, "kernel": 1}}]}


def read(model: object, dataset: object, *strategies: str) -> Grid:
    axes = {"model": [model], "dataset": [dataset], "system": "abci", "strategy": [*strategies]}
    return Grid.from_spec(Spec.model_validate({"axes": {**axes, "pe": 4, "batch": 8}}))


def test_what_stays_whole_is_said_with_the_reason() -> None:
    warnings = list_warnings(
        read(LSTM, WORDS, "spatial", "data+filter:group=2", "pipeline", "data")
    )
    assert len(warnings) == 2
    assert warnings[0].startswith("net: spatial does not split layers")
    assert warnings[1].startswith("net: data+filter:group=2 does not split recurrent, gates (")
    plain = list_warnings(read(PLAIN, IMAGES, "spatial", "filter"))
    assert [value for value in plain if "targets" not in value] == []


@pytest.mark.parametrize("group", ["filter", "channel"])
def test_to_split_all_is_refused_where_it_cannot_be(group: str) -> None:
    with pytest.raises(InputError) as error:
        _ = read(LSTM, WORDS, f"{group}:split=all").fitting
    assert str(error.value).startswith(
        f"strategy {group}:split=all: layer 'lstm1.recurrent' cannot be split"
    )
    assert read(PLAIN, IMAGES, f"{group}:split=all").fitting


def test_linear_layers_are_split_and_recurrent_ones_are_not() -> None:
    groups = read(LSTM, WORDS, "filter").groups((0, 0, 0, 0))
    assert groups is not None
    placement, bounds = groups.place()
    assert placement.split.reshape(-1).tolist() == [1, 0, 0, 0]
    assert bounds.fits.all()


def test_no_spatial_group_of_a_network_of_sequences() -> None:
    groups = read(LSTM, WORDS, "spatial").groups((0, 0, 0, 0))
    assert groups is not None
    _, bounds = groups.place()
    assert not bounds.defined.any()
