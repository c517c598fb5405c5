"""The authors' model files, valid and broken."""

from pathlib import Path

import pytest

from paradl.grids.entries.datasets import Dataset
from paradl.grids.library import find
from paradl.grids.models.files.netfile import NetModel, parse_net, read_net
from paradl.grids.reading.errors import InputError, ShapeError

AUTHORS = Path(__file__).parents[2] / "data" / "paradl"

NET = """\
Dataset|Tiny
# a comment|0
Input|100x3x8x8
Model|Net
CONV1|3x8x8|3x4x3x3|4x8x8|0.5\r
MPOOL|4x8x8|0x0x2x2|4x4x4 |0   # and another
BNORM|4x4x4|4x4x0x0|4x4x4|0

FC|4x4x4|4x10x4x4|10x1x1|0"""


def net(old: str = "", new: str = "") -> NetModel:
    assert old in NET
    return parse_net(NET.replace(old, new), "tiny.net", "tiny.net")


def test_layers_by_hand() -> None:
    layers = net().layers
    assert layers.names == ("CONV1", "MPOOL", "BNORM", "FC")
    assert layers.kinds == ("conv", "maxpool", "norm", "fc")
    assert layers.x.tolist() == [192, 256, 64, 64]
    assert layers.y.tolist() == [256, 64, 64, 10]
    assert layers.w.tolist() == [108, 0, 0, 640]
    assert layers.bias.tolist() == [0, 0, 0, 0]
    assert layers.flops.tolist() == [2 * 108 * 64, 64 * 4, 64, 1280]
    assert layers.channels.tolist() == [3, 4, 4, 64]
    assert layers.filters.tolist() == [4, 4, 4, 10]
    assert layers.extents_x[:, 2].tolist() == [8, 8, 4, 1]
    assert layers.kernel.tolist() == [[1, 3, 3], [1, 2, 2], [1, 1, 1], [1, 1, 1]]


def test_its_own_data_set() -> None:
    model = net()
    own = model.own_dataset
    assert (own.name, own.samples, own.shape, own.targets) == ("Tiny", 100, (3, 8, 8), 10)
    assert model.table(own) is model.layers
    other = Dataset(name="other", samples=1, shape=(3, 9, 9), targets=10)
    with pytest.raises(ShapeError, match=r"tiny\.net is written for samples of 3x8x8, got 3x9x9"):
        model.table(other)


def test_a_data_set_without_a_name_has_the_file_s(tmp_path: Path) -> None:
    """The label does not contain its folder, which another machine does not have."""
    (tmp_path / "tiny.net").write_text(NET.replace("Dataset|Tiny\n", ""))
    model = read_net(tmp_path / "tiny.net")
    assert model.own_dataset.name == "tiny.net"
    assert NetModel.from_definition(model.definition()).own_dataset == model.own_dataset


@pytest.mark.parametrize("name", ["two\nlines.net", "a" * 201 + ".net"])
def test_a_file_whose_name_is_no_label(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(NET)
    with pytest.raises(InputError, match="rename the file"):
        read_net(tmp_path / name)


def test_one_time_is_spread_by_flops() -> None:
    layers = net().layers
    assert layers.seconds is not None
    assert layers.seconds.sum() == pytest.approx(0.5, rel=1e-15)
    assert layers.seconds[3] / layers.seconds[0] == pytest.approx(1280 / 13824)


def test_times_of_layers_are_kept_and_may_be_missing() -> None:
    layers = net("10x1x1|0", "10x1x1|0.25").layers
    assert layers.seconds is not None
    assert layers.seconds.tolist() == [0.5, 0, 0, 0.25]
    assert net("0.5", "0").layers.seconds is None


def test_definition_rebuilds_it() -> None:
    model = net()
    again = NetModel.from_definition(model.definition())
    assert again == model
    assert again.layers.y.tolist() == model.layers.y.tolist()


@pytest.mark.parametrize(
    ("old", "new", "warnings"),
    [
        ("", "", ()),
        ("MPOOL|4x8x8", "MPOOL|4x28x8", ("6: MPOOL:",)),
        ("3x4x3x3", "2x4x3x3", ("5: CONV1: weights for 2 channels, input of 3",)),
        ("4x10x4x4", "4x10x2x2", ("9: FC: weights for extents 2x2, input of 4x4",)),
        ("3x4x3x3", "3x4x0x3", ("5: CONV1:",)),
    ],
)
def test_warnings(old: str, new: str, warnings: tuple[str, ...]) -> None:
    notes = net(old, new).warnings
    assert len(notes) == len(warnings)
    assert all(map(str.startswith, notes, (f"tiny.net:{place}" for place in warnings)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (NET, "", "tiny.net:"),
        ("Input|100x3x8x8\n", "", "tiny.net:"),
        ("100x3x8x8", "100x3x8", "tiny.net:3:"),
        ("100x3x8x8", "0x3x8x8", "tiny.net:3: Input:"),
        ("|0.5", "", "tiny.net:5:"),
        ("0.5", "fast", "tiny.net:5:"),
        ("0.5", "nan", "tiny.net:5:"),
        ("4x4x4 |", "4x4xfour|", "tiny.net:6: y:"),
        ("3x4x3x3", "3\x1fx4x3x3", "tiny.net:5: w:"),
        ("4x4x4 |", "4x4x0|", "tiny.net:6: y:"),
        ("4x4x0x0", "4x4", "tiny.net:7: w:"),
        ("10x1x1", "10x999999999x999999999", "tiny.net: targets:"),
        ("BNORM", "GELU", "tiny.net:7:"),
        ("CONV1|", f"CONV{'1' * 200}|", "tiny.net:5:"),
        ("Model|Net", "Input|1x3x8x8", "tiny.net:4:"),
        ("Dataset|Tiny", f"Dataset|{'T' * 201}", "tiny.net: name:"),
        ("|0.5", "|0.5" + "|" * 10**6 + "7", "tiny.net:5:"),
        ("0.5", "1e308", "tiny.net:5:"),
        ("3x4x3x3", "3x4x999999999x999999999", "tiny.net:"),
        (NET[NET.index("CONV1") :], "CONV|3x8x8|0x0x0x0|4x8x8|1", "tiny.net:5:"),
        (NET[NET.index("CONV1") :], "RELU|3x8x8|3x3x0x0|3x8x8|0\n" * 5001, "tiny.net:"),
        (NET, "x\n" * 10**6, "tiny.net:"),
    ],
)
def test_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        net(old, new)
    assert str(error.value).startswith(message)


def test_bars_behind_the_fields_are_nothing() -> None:
    assert net("|0.5", "|0.5" + "|" * 10**6).layers.seconds is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mask": [True]}, "model tiny.net: mask:"),
        ({"mask": [[]] * 4}, "model tiny.net: mask.0:"),
        ({"net": {}}, "model tiny.net: net:"),
        ({"name": 3}, "model 3: name:"),
        ({"nett": ""}, "model tiny.net: nett:"),
    ],
)
def test_a_definition_that_is_forged(changes, message) -> None:
    with pytest.raises(InputError) as error:
        find("model", net().definition() | changes, Path())
    assert str(error.value).startswith(message)


# File, layers, weights, seconds per sample.
FILES = [
    ("ALEXNET_ImageNet_profall.net_sc", 20, 62_367_776, 6.10938e-4),
    ("VGG_ImageNet_profall.net_sc", 38, 169_801_408, 8.245589e-3),
    ("RESNET50_ImageNet_profall.net_sc", 166, 22_734_016, 3.119502e-3),
    ("COSMOFLOW.net", 25, 2_128_064, 2.108143184),
    ("COSMOFLOW.net_256", 25, 2_128_064, 0.263517898),
]


@pytest.mark.parametrize(("name", "layers", "weights", "seconds"), FILES)
def test_the_authors_files(name: str, layers: int, weights: int, seconds: float) -> None:
    model = read_net(AUTHORS / name)
    assert model.name == name
    assert len(model.layers) == layers
    assert model.layers.parameters == weights
    assert model.layers.seconds is not None
    assert model.layers.seconds.sum() == pytest.approx(seconds, rel=1e-12)


def test_the_authors_typo_is_warned_about_by_line() -> None:
    path = AUTHORS / "COSMOFLOW.net_256"
    model = read_net(path)
    assert model.warnings == (
        f"{path}:8: RELU: the input 32x2128x128x128 is not the output before it, "
        "32x128x128x128; going on with the latter",
    )
    assert model.layers.x[4] == 32 * 128**3
