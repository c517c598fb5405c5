"""An extended cube is that of the longer spec, value for value; only what is new is computed."""

import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import xarray as xr
import zarr
from cubes import DATA, arrays, unmark

import paradl
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube import provenance
from paradl.sweep.cube.creation import create_cube, extend_cube, plan_extension
from paradl.sweep.cube.plan import Plan, plan_cube
from paradl.sweep.cube.store import Cube, open_cube
from paradl.sweep.engine.progress import silent
from paradl.sweep.engine.run import Where, read_grid
from paradl.sweep.engine.run import sweep as execute
from paradl.sweep.engine.verification import verify

# Each shape of a block is a program that takes a second and more to trace and compile: as few
# shapes as will do. Blocks as a sweep makes them, and such whose last along the PEs has room left
# or is just full.
WHOLE, RAGGED, FULL = (1, 1, 1, 2, 4, 2), (1, 1, 1, 2, 3, 2), (1, 1, 1, 2, 2, 2)

LONGER: dict[str, dict[str, object]] = {
    "model": {"model": ["vgg16", "alexnet", "cosmoflow"]},
    "dataset": {"dataset": ["imagenet-226", "cosmoflow-128", "imagenet"]},
    "system": {"system": ["dgx-h100", "abci"]},
    "strategy": {"strategy": ["channel", "data"]},
    "pe": {"pe": [1, 2, 4, 8, 65]},
    "batch": {"batch": [16, 32, 64]},
}
LONGER["all at once"] = {dim: values for value in LONGER.values() for dim, values in value.items()}
TWICE: dict[str, object] = {
    "pe": [1, 2, 4, 8, 16, 32, 64, 128],
    "batch": [16, 32, 64, 128],
}


def longer(spec: dict, more: dict[str, object]) -> dict:
    return spec | {"oracle": "paper", "axes": spec["axes"] | more}


def cut(grid: Grid, shard: tuple[int, ...]) -> Plan:
    """A plan of small blocks."""
    return replace(plan_cube(grid), shard=shard)


def swept(url: object, grid: Grid, plan: Plan) -> Path:
    create_cube(str(url), grid, plan)
    execute(grid, str(url), False, Where(), silent)
    return Path(str(url))


def extended(url: Path, spec: dict, seen: list[int] | None = None) -> Cube:
    @contextmanager
    def recorded(plan: Plan, done: object) -> Iterator[Callable[[int], None]]:
        yield ([] if seen is None else seen).append

    paradl.run(spec, url, extend=True, progress=recorded)
    return open_cube(str(url))


def fresh(cube: Cube, url: object) -> Path:
    """The same cube, in the same blocks, never extended."""
    return swept(url, cube.grid, replace(cube.plan))


def data(url: Path) -> dict[str, bytes]:
    """All files of blocks; marks keep the files that they were put into at first."""
    apart = ("progress", *open_cube(str(url)).plan.dims)
    return {
        str(path.relative_to(url)): path.read_bytes()
        for path in url.rglob("*")
        if path.is_file()
        and path.name != "zarr.json"
        and path.relative_to(url).parts[0] not in apart
    }


@pytest.mark.parametrize(
    ("more", "shard"),
    [
        pytest.param(LONGER["all at once"], (1, 1, 2, 2, 5, 3), id="all at once"),
        pytest.param(TWICE, WHOLE, id="after full blocks"),
    ],
)
def test_an_extended_cube_is_the_longer_one(more, shard, data_spec, tmp_path):
    grid = read_grid(data_spec)
    url = swept(tmp_path / "cube.zarr", grid, cut(grid, shard))
    cube = extended(url, longer(data_spec, more))
    other = fresh(cube, tmp_path / "fresh.zarr")
    assert arrays(url) == arrays(other)
    assert data(url) == data(other)
    assert cube.read_done().all()
    assert verify(str(url)).damaged == ()


def test_answers_are_those_of_a_new_sweep(data_spec, tmp_path):
    """Also where a new sweep has other blocks, and parts of its summary."""
    grid = read_grid(data_spec)
    url = swept(tmp_path / "cube.zarr", grid, cut(grid, RAGGED))
    spec = longer(data_spec, LONGER["pe"] | LONGER["batch"])
    cube = extended(url, spec)
    other = tmp_path / "fresh.zarr"
    paradl.run(spec, other)
    mine, theirs = paradl.open_dataset(url).load(), paradl.open_dataset(other).load()
    xr.testing.assert_allclose(mine.reindex_like(theirs), theirs, rtol=1e-6)  # shapes differ
    ranks = cube.grid.labels
    for question in (paradl.limits, paradl.best):
        result, expected = ordered(question(str(url)), ranks), ordered(question(str(other)), ranks)
        pd.testing.assert_frame_equal(result, expected)
    lines = paradl.limits(str(url)), paradl.limits(mine)  # as kept, and from the cells
    pd.testing.assert_frame_equal(*lines)


def ordered(table: pd.DataFrame, labels: dict[str, tuple[str, ...]]) -> pd.DataFrame:
    keys = [value for value in (*labels, "batch", "pe") if value in table]
    return table.sort_values(keys).reset_index(drop=True)


def test_stored_values_keep_their_places(data_spec, tmp_path):
    grid = read_grid(data_spec)
    cube = create_cube(str(tmp_path / "cube.zarr"), grid, plan_cube(grid))
    to = plan_extension(cube, read_grid(longer(data_spec, LONGER["all at once"])))
    grid = extend_cube(cube, to).grid
    assert grid.labels == {
        "model": ("alexnet", "cosmoflow", "vgg16"),
        "dataset": ("cosmoflow-128", "imagenet", "imagenet-226"),
        "system": ("abci", "dgx-h100"),
        "strategy": ("data", "channel"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = xr.open_zarr(tmp_path / "cube.zarr")
    for dim, labels in grid.labels.items():
        assert tuple(alone[dim].values) == labels
    assert alone.pe.values.tolist() == LONGER["pe"]["pe"]


def test_whole_blocks_are_not_touched(data_spec, tmp_path):
    grid = read_grid(data_spec)
    url = swept(tmp_path / "cube.zarr", grid, cut(grid, FULL))
    before = {url / name: (url / name).stat().st_mtime_ns for name in data(url)}
    blocks = open_cube(str(url)).plan.blocks
    seen: list[int] = []
    more = {"pe": [1, 2, 4, 8, 9, 10], "model": ["alexnet", "cosmoflow", "vgg16"]}
    cube = extended(url, longer(data_spec, more), seen)
    assert len(seen) == cube.plan.blocks - blocks
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_only_blocks_at_the_end_that_gain_cells_are_computed_again(data_spec, tmp_path):
    grid = read_grid(data_spec)
    url = swept(tmp_path / "cube.zarr", grid, cut(grid, RAGGED))
    before = open_cube(str(url)).plan
    seen: list[int] = []
    cube = extended(url, longer(data_spec, {"pe": [1, 2, 4, 8, 9]}), seen)
    assert {str(cube.plan.find_region(block)[4]) for block in seen} == {"slice(3, 5, None)"}
    assert len(seen) == before.blocks // 2  # the new value found room in them


def test_again_and_again(data_spec, data_url, tmp_path):
    url = shutil.copytree(data_url, tmp_path / "cube.zarr")
    identities = {open_cube(str(url)).identity}
    for pes in ([1, 2, 4, 8, 9], [1, 2, 4, 8, *range(9, 15)]):
        cube = extended(url, longer(data_spec, {"pe": pes}))
        identities.add(cube.identity)
    assert arrays(url) == arrays(fresh(cube, tmp_path / "fresh.zarr"))
    assert len(identities) == 3  # who holds the cube open must see that it is another
    assert str(cube.group.attrs["history"]).count("extended by paradl") == 2


def test_nothing_to_add_is_a_resumed_run(data_spec, data_url, tmp_path):
    url = shutil.copytree(data_url, tmp_path / "cube.zarr")
    before = arrays(url), open_cube(str(url)).identity
    unmark(url, 1)
    seen: list[int] = []
    reordered = longer(data_spec, {"model": ["cosmoflow", "alexnet"]})
    cube = extended(url, reordered, seen)
    assert seen == [1]
    assert (arrays(url), cube.identity) == before


def test_an_unfinished_cube_may_be_extended(data_spec, tmp_path):
    grid, url = read_grid(data_spec), tmp_path / "cube.zarr"
    create_cube(str(url), grid, cut(grid, RAGGED))
    cube = extended(url, longer(data_spec, {"batch": TWICE["batch"]}))
    assert arrays(url) == arrays(fresh(cube, tmp_path / "fresh.zarr"))


def test_summaries_alone(data_spec, tmp_path):
    url = tmp_path / "cube.zarr"
    paradl.run(data_spec, url, reduce_only=True)
    more = longer(data_spec, {"batch": TWICE["batch"]})
    with pytest.raises(InputError, match=r"outputs: \[\]"):
        paradl.run(more, url, extend=True)
    paradl.run(more, url, extend=True, reduce_only=True)
    assert arrays(url) == arrays(fresh(open_cube(str(url)), tmp_path / "fresh.zarr"))


REFUSED = [
    ({"batch": [16]}, r"axes.batch: \[16, 32\] .*\[16\]"),
    ({"batch": [16, 64]}, r"axes.batch: \[16, 32\] .*\[16\]"),
    ({"model": ["alexnet", "vgg16"]}, r"axes.model: \[alexnet, cosmoflow\] .*\[alexnet\]"),
    ({"gamma": [0.5, 1]}, r"axes.gamma: .*\[0.5, 1\]"),
    ({"pe": [1, 2, 3, 4, 8]}, "axes.pe: .* 8; .* 3;"),
    ({"pe": [1, 2, 4, 5, 6, 7, 8, 9]}, "axes.pe: .* 5, 6, 7;"),
    ({"batch": [8, 16, 32]}, "axes.batch: .* 32"),
]


@pytest.mark.parametrize(("axes", "message"), REFUSED)
def test_what_is_no_extension_is_refused(axes, message, data_spec, data_url):
    before = data(Path(data_url))
    with pytest.raises(InputError, match=message) as error:
        paradl.run(longer(data_spec, axes), data_url, extend=True)
    assert str(error.value).startswith(f"{data_url}: ")
    assert data(Path(data_url)) == before


def test_other_formulas_are_no_extension(data_spec, data_url):
    spec = longer(data_spec, {"pe": [1, 2, 4, 8, 16]}) | {"scaling": "strong"}
    with pytest.raises(InputError, match=r"scaling: weak .*strong"):
        paradl.run(spec, data_url, extend=True)


def test_an_entry_that_changed_is_no_extension(data_spec, data_url):
    from paradl.grids.library import find

    other: dict[str, Any] = find("system", "abci", Path()).definition()
    other["pe"]["efficiency"] = 0.25
    spec = longer(data_spec, {"system": [other, "dgx-h100"]})
    with pytest.raises(InputError, match=r"system.abci.pe.efficiency: 0.5 .*0.25"):
        paradl.run(spec, data_url, extend=True)


def test_without_the_option_it_is_refused(data_spec, data_url):
    with pytest.raises(InputError, match=r"axes.pe: .*extend=True"):
        paradl.run(longer(data_spec, LONGER["pe"]), data_url)
    with pytest.raises(InputError, match=r"axes.pe: .*overwrite=True"):
        paradl.run(longer(data_spec, {"pe": [1, 2]}), data_url)


def test_no_cube_to_extend(data_spec, tmp_path):
    with pytest.raises(InputError, match="extend=True"):
        paradl.run(data_spec, tmp_path / "mistyped.zarr", extend=True)
    assert list(tmp_path.iterdir()) == []


def test_extend_and_overwrite_exclude_each_other(data_spec, data_url):
    with pytest.raises(InputError, match="overwrite, extend: "):
        paradl.run(data_spec, data_url, extend=True, overwrite=True)


def test_two_versions_do_not_share_a_cube(data_spec, data_url, tmp_path):
    shutil.copytree(data_url, tmp_path / "cube.zarr")
    group = zarr.open_group(tmp_path / "cube.zarr", mode="r+")
    group.update_attributes({"paradl_versions": '{"paradl": "0.0.1"}'})
    with pytest.raises(InputError, match=r"paradl 0\.0\.1"):
        paradl.run(longer(data_spec, LONGER["pe"]), tmp_path / "cube.zarr", extend=True)


@pytest.fixture
def formula(tmp_path, monkeypatch) -> Iterator[Path]:
    """A file of the sources that compute answers, to edit."""
    folder = tmp_path / "formulas"
    folder.mkdir()
    (folder / "__init__.py").write_text("SPEED = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(provenance, "COMPUTING", ("formulas",))
    provenance.digest_code.cache_clear()  # as in a new process, here and below
    yield folder / "__init__.py"
    provenance.digest_code.cache_clear()
    sys.modules.pop("formulas", None)


def test_other_formulas_add_nothing_to_a_store(formula, data_spec, tmp_path):
    url = tmp_path / "cube.zarr"
    paradl.run(data_spec, url)
    formula.write_text("SPEED = 2.5\n")
    provenance.digest_code.cache_clear()
    with pytest.raises(InputError, match="other code: code "):
        paradl.run(longer(data_spec, LONGER["pe"]), url, extend=True)
    assert paradl.open_dataset(url).sizes["pe"] < 5


class Cut(BaseException):
    """The process is killed."""


def dying_after(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """The `last`th file that is written is the last one: what a kill leaves."""
    written = count(1)
    put = zarr.storage.LocalStore.set

    async def counted(self: Any, *arguments: Any, **options: Any) -> None:
        if next(written) > last:
            raise Cut
        await put(self, *arguments, **options)

    monkeypatch.setattr(zarr.storage.LocalStore, "set", counted)


def test_cut_short_after_any_write(tmp_path):
    """The cube is the old one or the new one, and both go on: with the old spec or with the new."""
    short = {
        "oracle": "paper",
        "axes": DATA["axes"] | {"model": "alexnet", "dataset": "imagenet"},
    }
    grid, spec = read_grid(short), longer(short, {"pe": [1, 2, 4, 8, 16]})
    old = swept(tmp_path / "old.zarr", grid, cut(grid, RAGGED))
    new = shutil.copytree(old, tmp_path / "new.zarr")
    cube = extended(new, spec)
    before, after, whole = arrays(old), arrays(new), data(new)
    for last in count(0, 15):
        url = shutil.copytree(old, tmp_path / f"{last}.zarr")
        with pytest.MonkeyPatch.context() as patch:
            dying_after(patch, last)
            try:
                paradl.run(spec, url, extend=True)
            except Cut:
                pass
            else:
                break
        result = open_cube(str(url))
        switched = result.plan.shape == cube.plan.shape
        assert switched or result.plan.shape == grid.shape
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            xr.open_zarr(url).load()
        if not switched:
            abandoned = shutil.copytree(url, tmp_path / f"abandoned-{last}.zarr")
            paradl.run(short, abandoned)
            assert arrays(abandoned) == before
            # The first mends the arrays' own metadata, which other readers go by.
            verify(str(abandoned))
            assert verify(str(abandoned)).damaged == ()
        extended(url, spec)
        assert (arrays(url), data(url)) == (after, whole)
    assert last > 30


def test_a_dry_run_tells_what_is_new(data_spec, tmp_path, cli, spec_file):
    grid = read_grid(data_spec)
    url = swept(tmp_path / "cube.zarr", grid, cut(grid, RAGGED))
    before = data(url)
    path = spec_file(
        longer(data_spec, {"pe": [1, 2, 4, 8, *range(9, 15)], "batch": TWICE["batch"]})
    )
    code, out, _ = cli("sweep", path, url, "--extend", "--dry-run")
    assert code == 0
    assert out.splitlines()[-2:] == [
        "  new     pe 9, ..., 14 (6 values); batch 64, 128: 128 cells",
        "  to do   28 blocks, 136 cells",
    ]
    assert data(url) == before
    assert cli("sweep", path, url, "--extend", "--quiet")[0] == 0
    assert cli("sweep", path, url, "--extend", "--dry-run")[1] == f"{url}: nothing to add\n"
    assert cli("limits", url)[0] == 0


@pytest.mark.parametrize("options", [("--extend",), ()])
def test_a_dry_run_of_an_extension_cut_short(options, data_spec, tmp_path, cli, spec_file):
    """Blocks keep the size that they were made with, and some of them are still to do."""
    grid = read_grid(data_spec)
    url = swept(tmp_path / "cube.zarr", grid, cut(grid, RAGGED))
    extended(url, longer(data_spec, TWICE))
    blocks = open_cube(str(url)).plan.blocks
    unmark(url, 0, blocks - 1)
    path = spec_file(longer(data_spec, TWICE))
    code, out, _ = cli("sweep", path, url, "--dry-run", *options)
    assert code == 0
    assert f" {blocks} of " in out
    assert out.splitlines()[-1].startswith("  to do   2 blocks, ")
