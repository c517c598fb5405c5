"""Rows: parameters that change together, as users write them, and where mistakes are told."""

from pathlib import Path

import pytest

from paradl.grids.grid import Grid, read_grid
from paradl.grids.reading.errors import InputError

AXES: dict[str, object] = {
    "model": "alexnet",
    "dataset": "imagenet",
    "system": "abci",
    "strategy": "data+pipeline",
    "pe": [8, 12],
    "batch": [16, 24],
}
SPEC = """\
axes:
  model: alexnet
  dataset: imagenet
  system: abci
  pe: [8, 12]
  batch: 16
  layout:
    - {group: 4, segments: 8}
    - {group: 8, segments: 4}
"""


def make_grid(layout: object, **settings: object) -> Grid:
    return read_grid({"axes": {**AXES, "layout": layout}, **settings})


def list_rows(grid: Grid) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in grid.rows["layout"].columns.items()}


ROWS = {"group": [4, 8], "inter_bandwidth": [25e9, 10e9]}


@pytest.mark.parametrize(
    "form",
    [
        [{"group": 4, "inter_bandwidth": "25 GB/s"}, {"inter_bandwidth": "10 GB/s", "group": 8}],
        {"columns": {"group": [4, 8], "inter_bandwidth": ["25 GB/s", 10e9]}},
    ],
)
def test_rows_keep_their_order_whatever_their_form(form: object) -> None:
    grid = make_grid(form)
    assert list_rows(grid) == ROWS
    assert (grid.dims[-1], grid.shape[-1]) == ("layout", 2)


def test_a_product_changes_its_last_factor_fastest() -> None:
    grid = make_grid({"product": {"segments": [2, 1], "group": {"pow2": [2, 8]}}})
    assert list_rows(grid) == {"segments": [1, 1, 1, 2, 2, 2], "group": [2, 4, 8] * 2}


@pytest.mark.parametrize(
    ("scaling", "accumulate", "kept"),
    [
        # 3 divides 12 and 24; 5 divides nothing, and 32 segments no batch.
        ("weak", [7], [(1, 3), (3, 3), (16, 3), (1, 4), (3, 4), (16, 4)]),
        # Segments and passes together divide a global batch.
        ("strong", [3], [(1, 3), (1, 4)]),
    ],
)
def test_divides_leaves_out_what_divides_nothing(scaling, accumulate, kept) -> None:
    factors = {"group": [3, 4, 5], "segments": [1, 3, 16, 32], "accumulate": accumulate}
    grid = make_grid({"product": factors, "where": "divides"}, scaling=scaling)
    rows = list_rows(grid)
    assert [*zip(rows["segments"], rows["group"], strict=True)] == kept


def test_a_table_of_a_file_is_spelled_out(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("group,inter_bandwidth\n4,25 GB/s\n8,10 GB/s\n")
    (tmp_path / "spec.yaml").write_text(SPEC.partition("    -")[0].rstrip() + " {csv: ./rows.csv}")
    grid = read_grid(tmp_path / "spec.yaml")
    assert list_rows(grid) == ROWS
    (tmp_path / "rows.csv").unlink()
    assert list_rows(Grid.from_definition(grid.definition())) == ROWS


def test_a_store_names_no_file() -> None:
    definition = make_grid([{"group": 4}]).definition()
    axes = definition["axes"]
    assert isinstance(axes, dict)
    axes["layout"] = {"csv": "/etc/passwd"}
    with pytest.raises(InputError, match="do not trust"):
        Grid.from_definition(definition)


@pytest.mark.parametrize(
    "form",
    [
        [{"group": 4, "segments": 8}],
        {"product": {"group": [2, 3], "segments": {"pow2": [1, 8]}}, "where": "divides"},
    ],
)
def test_a_definition_makes_the_same_rows(form: object) -> None:
    grid = make_grid(form)
    assert list_rows(Grid.from_definition(grid.definition())) == list_rows(grid)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("group: 8", "gruop: 8", r"spec\.yaml:9: axes\.layout\.1: .*'group'"),
        ("group: 8", "group: 2.5", r"spec\.yaml:9: axes\.layout\.1: group: .*2\.5"),
        ("group: 8", "group: 8 GB", r"spec\.yaml:9: axes\.layout\.1: group"),
        ("group: 8, ", "", r"spec\.yaml:9: axes\.layout\.1: 'group'"),
        (
            "group: 8, segments: 4",
            "group: 4, segments: 8",
            r"spec\.yaml:9: axes\.layout\.1: .*twice",
        ),
        ("group: 8", "pe: 8", r"spec\.yaml:9: axes\.layout\.1: 'pe'"),
        ("{group: 8, segments: 4}", "{}", r"spec\.yaml:9: axes\.layout\.1"),
        ("pe: [8", "group: 2\n  pe: [8", r"spec\.yaml:8: layout: 'group'"),
        ("axes:", "parameters: {group: 2}\naxes:", r"spec\.yaml:8: layout: 'group'"),
        ("  pe: [8", "  other: [{group: 2}]\n  pe: [8", r"spec\.yaml:\d: \w+: 'group'"),
        ("layout:", "memory:", r"spec\.yaml:7: memory: "),
        ("layout:", "Big layout:", r"spec\.yaml:7: Big layout: "),
        ("segments: 8}", "segments: 8, gamma: 0.5}", r"spec\.yaml:9: axes\.layout\.1: 'gamma'"),
    ],
)
def test_a_mistake_in_a_list_is_pointed_at(tmp_path: Path, old: str, new: str, where: str) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(SPEC.replace(old, new, 1))
    with pytest.raises(InputError, match=where):
        read_grid(file)


LONG = {"linspace": [0, 1, 4_000]}  # 16 million pairs


@pytest.mark.parametrize(
    ("form", "where"),
    [
        ([], "axes.layout"),
        ({"columns": {"group": [4, 8], "segments": [4]}}, r"axes\.layout\.columns\.segments: "),
        ({"columns": {"group": [4, 4]}}, r"columns\.1"),
        ({"columns": {"group": 4}}, r"columns\.group"),
        ({"columns": {}}, "columns"),
        ({"columns": {"group": [4]}, "product": {"segments": [4]}}, "one of"),
        ({"columns": {"group": [4]}, "where": "divides"}, "'where'"),
        ({"product": {"group": [4, 8]}, "where": "divide"}, "layout.where: .*'divides'"),
        ({"product": {"group": [5]}, "where": "divides"}, "no row is left"),
        ({"product": {"inter_latency": [0]}, "where": "divides"}, "'divides'"),
        ({"product": {"group": {"pow2": [3, 8]}}}, r"product\.group"),
        ({"product": {"groups": [4]}}, "'group'"),
        ({"product": {"gamma": [0.5, 1]}}, "'oracle: machine'"),
        ({"rows": [{"group": 4}]}, "'rows'"),
        ({"product": {"gamma": LONG, "inter_latency": LONG}}, "most"),
        ({"csv": "./none.csv"}, "none.csv"),
    ],
)
def test_other_mistakes_are_pointed_at(form: object, where: str) -> None:
    with pytest.raises(InputError, match=where):
        make_grid(form)


@pytest.mark.parametrize("form", [[1, 2], [{"pow2": [1, 2]}], {"pow2": [1, 2]}, 4])
def test_what_is_no_row_is_an_unknown_key(form: object) -> None:
    with pytest.raises(InputError, match="gruop: unknown key; did you mean 'group'"):
        read_grid({"axes": {**AXES, "gruop": form}})


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("inter_bandwith\n1 GB/s\n", ":1: .*inter_bandwidth"),
        ("group,inter_bandwidth\n4,10 GB/s\n8,7\n", ":3: inter_bandwidth"),
        ("pe,group\n4,4\n", ":2: 'pe'"),
        ("group\n4\n4\n", ":3: this row stands twice"),
        ("group\n", "at least one row"),
    ],
)
def test_a_mistake_in_a_file_is_pointed_at(tmp_path: Path, text: str, where: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=where):
        make_grid({"csv": str(file)})
