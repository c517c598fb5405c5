"""Layer configurations: both formats of the authors, and broken files."""

from pathlib import Path

import pytest

from paradl.grids.models.files.netfile import read_layers, read_net
from paradl.grids.models.layers import LayerTable
from paradl.grids.reading.errors import InputError

AUTHORS = Path(__file__).parents[2] / "data" / "paradl"


def authors_table(name: str) -> LayerTable:
    return read_net(AUTHORS / name).layers


@pytest.mark.parametrize(
    ("net", "config", "kinds", "split"),
    [
        ("ALEXNET_ImageNet_profall.net_sc", "filter_alexnet.lc", {"conv"}, 5),
        ("ALEXNET_ImageNet_profall.net_sc", "spatial_alexnet.lc", {"conv", "maxpool"}, 7),
        ("VGG_ImageNet_profall.net_sc", "filter_vgg.lc", {"conv"}, 13),
        ("VGG_ImageNet_profall.net_sc", "spatial_vgg.lc", {"conv", "maxpool"}, 18),
        ("RESNET50_ImageNet_profall.net_sc", "channel_resnet.lc", {"conv"}, 49),
        ("COSMOFLOW.net", "spatial_cosmolow.lc", {"conv"}, 2),
    ],
)
def test_the_authors_files(net: str, config: str, kinds: set[str], split: int) -> None:
    table = authors_table(net)
    flags = read_layers(AUTHORS / config, table.names)
    assert len(flags) == len(table)
    assert sum(flags) == split
    assert {kind for kind, flag in zip(table.kinds, flags, strict=True) if flag} == kinds


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "filter.lc"
    path.write_bytes((AUTHORS / "filter_alexnet.lc").read_bytes())
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("CONV2|1", "CONV7|1", ":4:"),
        ("CONV2|1", "4 CONV2 |1", ":4:"),
        ("CONV2|1", "CONV2|2", ":4:"),
        ("CONV2|1", "CONV2", ":4:"),
        ("CONV2|1", f"{'9' * 5000} CONV2|1", ":4:"),
        ("CONV2|1", "C" * 10**6, ":4:"),
        ("CONV2|1", "", ":"),
        ("CONV2|1", "CONV2|1\nRELU|0", ":"),
    ],
)
def test_refused(config: Path, old: str, new: str, message: str) -> None:
    config.write_text(config.read_text().replace(old, new))
    with pytest.raises(InputError) as error:
        read_layers(config, authors_table("ALEXNET_ImageNet_profall.net_sc").names)
    assert str(error.value).startswith(f"{config}{message}")
    assert len(str(error.value)) < 400


def test_comments_blank_lines_and_case_do_not_matter(config: Path) -> None:
    table = authors_table("ALEXNET_ImageNet_profall.net_sc")
    before = read_layers(config, table.names)
    config.write_text("# split\n\n" + config.read_text().lower().replace("conv2", "3 conv2 "))
    assert read_layers(config, table.names) == before
