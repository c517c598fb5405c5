"""Questions of slices of a Dataset answer what they answer of the whole, of those cells."""

import pytest
import xarray as xr

import paradl
from paradl.grids.reading.errors import InputError


@pytest.fixture(scope="module")
def mixed(mixed_read) -> xr.Dataset:
    """The cells of MIXED under some strategies, read once."""
    return mixed_read.sel(strategy=["data", "data+filter"])


QUESTIONS = [paradl.limits, paradl.best]
PICKED = {"model": "alexnet", "dataset": "imagenet-226", "strategy": "data", "batch": 64, "pe": 8}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("axis", PICKED)
def test_a_scalar_is_a_dimension_of_size_one(mixed, question, axis) -> None:
    picked = mixed.sel({axis: PICKED[axis]})
    assert picked[axis].ndim == 0
    assert question(picked).equals(question(mixed, selection={axis: PICKED[axis]}))


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_cell_is_a_slice_too(mixed, question) -> None:
    cell = mixed.sel(PICKED).isel(system=0, inter_bandwidth=1)
    expected = question(mixed, selection=PICKED | {"inter_bandwidth": 12.5e9})
    assert len(expected) == 1
    assert question(cell).equals(expected)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_order_of_a_slice_does_not_matter(mixed, question) -> None:
    expected = question(mixed)
    assert question(mixed.transpose("inter_bandwidth", "batch", ...)).equals(expected)
    assert question(mixed.isel(pe=slice(None, None, -1))).equals(expected)
    assert question(mixed.squeeze()).equals(expected)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_slice_of_a_slice(mixed, question) -> None:
    rows = question(mixed.sel(model="alexnet"), selection={"model": "alexnet", "pe": [4, 8]})
    assert rows.equals(question(mixed, selection={"model": "alexnet", "pe": [4, 8]}))


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_read_in_parts_is_answered_alike(small_url, question, monkeypatch) -> None:
    cells = paradl.open_dataset(small_url)
    expected = question(cells)
    monkeypatch.setattr("paradl.sweep.cells.reader.FEW", 0)
    assert question(cells).equals(expected)


POINTS = xr.DataArray([0, 1], dims="points")
BAD = [
    (lambda ds: ds.isel(pe=0, drop=True), "coordinate 'pe'"),
    (lambda ds: ds.isel(inter_bandwidth=0, drop=True), "coordinate 'inter_bandwidth'"),
    (lambda ds: ds.drop_vars("pe"), "coordinate 'pe'"),
    (lambda ds: ds.mean("batch"), "coordinate 'batch'"),
    (lambda ds: ds.isel(pe=POINTS, batch=POINTS), "dimension 'points'"),
    (lambda ds: ds.isel(pe=[]), "'pe'"),
    (lambda ds: ds.drop_vars("memory"), "'memory'"),
    (lambda ds: ds.drop_vars("serial_time"), "'serial_time'"),
    (lambda ds: ds.where(ds.pe > 1), "limit: .*float32"),
    (lambda ds: ds["memory"], "DataArray"),
    (lambda ds: None, "NoneType"),
    (lambda ds: "", "store: "),
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(("change", "message"), BAD)
def test_what_is_no_slice_is_refused(mixed, question, change, message) -> None:
    with pytest.raises(InputError, match=message):
        question(change(mixed))
