"""Every way in which a file can be lost or change, on real stores: it is named, and made anew."""

import errno
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
import zarr
from cubes import MARKS, refuse_writes, unmark

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.lock import hold_store
from paradl.sweep.cube.plan import make_plan
from paradl.sweep.engine.progress import silent
from paradl.sweep.engine.run import Where, read_grid
from paradl.sweep.engine.run import sweep as execute
from paradl.sweep.engine.verification import verify
from paradl.sweep.errors import RunError
from paradl.sweep.questions.status import read_status

BLOCK = "c.0.1.0.0.0.0"  # the first that fits: alexnet on imagenet


@pytest.fixture
def url(small_url, tmp_path) -> Path:
    """A store with the whole of SMALL, to damage."""
    shutil.copytree(small_url, tmp_path / "cube.zarr")
    return tmp_path / "cube.zarr"


def chunks(url: Path) -> list[Path]:
    """Every file that is no metadata."""
    return sorted(path for path in url.rglob("*") if path.is_file() and path.name != "zarr.json")


def data(url: Path) -> list[Path]:
    """Those that are no marks."""
    return [path for path in chunks(url) if "progress" not in path.parts]


def contents(url: Path) -> dict[Path, bytes]:
    return {path.relative_to(url): path.read_bytes() for path in url.rglob("*") if path.is_file()}


def flipped(path: Path, at: float) -> None:
    """One bit is another, at so large a part of the file."""
    result = bytearray(path.read_bytes())
    result[min(int(at * len(result)), len(result) - 1)] ^= 4
    path.write_bytes(result)


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "first bits": lambda path: flipped(path, 0),
    "inner bits": lambda path: flipped(path, 0.4),
    "last bits": lambda path: flipped(path, 1),
    "half": halved,
    "nothing": emptied,
    "gone": Path.unlink,
}


def named(url: Path) -> list[str]:
    return [place.file for place in verify(str(url)).damaged]


def test_a_whole_store_is_whole(small_url):
    before = contents(Path(small_url))
    report = verify(small_url)
    assert (report.damaged, report.whole, report.left) == ((), 4, "")
    assert contents(Path(small_url)) == before


@pytest.mark.parametrize("first", [0, 3])
def test_whatever_is_damaged_is_named_and_made_anew(first, url, small):
    """Each file in another way than the ones beside it."""
    whole, paths = contents(url), data(url)
    for number, path in enumerate(paths, first):
        [*DAMAGES.values()][number % len(DAMAGES)](path)
    assert sorted(named(url)) == [str(path.relative_to(url)) for path in paths]
    paradl.run(small, url)
    assert contents(url) == whole


@pytest.mark.parametrize("damage", ["inner bits", "gone"])
def test_marks(damage, url, small):
    whole = contents(url)
    DAMAGES[damage](url / MARKS)
    lost = damage == "gone"  # blocks that are not done are no damage
    assert named(url) == ([] if lost else [MARKS])
    assert read_status(str(url))["blocks_done"] == 0
    paradl.run(small, url)
    assert contents(url) == whole


def test_only_damaged_blocks_are_computed_again(url, small):
    whole = contents(url)
    flipped(url / "memory" / BLOCK, 0.5)
    (url / "comp_time" / BLOCK).unlink()
    assert {place.block for place in verify(str(url)).damaged} == {1}
    assert read_status(str(url))["blocks_done"] == 3
    seen: list[int] = []

    @contextmanager
    def recorded(plan, done) -> Iterator[Callable[[int], None]]:
        yield seen.append

    paradl.run(small, url, progress=recorded)
    assert seen == [1]
    assert contents(url) == whole


def test_a_block_is_named_by_its_cells(url):
    (url / "serial_time/c.1.0.0.0").unlink()
    halved(url / "limit/c.1.0.0.0.0.0")
    serial, limit = sorted(
        verify(str(url)).damaged, key=lambda value: value.variable != "serial_time"
    )
    assert (serial.variable, serial.what) == ("serial_time", "the file is missing")
    assert list(serial.cells) == ["model", "dataset", "system", "batch"]
    assert limit.what == "its checksum differs"
    assert limit.cells["model"].first == limit.cells["model"].last == "cosmoflow"
    pe = limit.cells["pe"]
    assert (pe.first, pe.last, pe.count) == (1, 8, 4)


def test_blocks_of_many_shapes(small, tmp_path):
    grid = read_grid(small)
    url = tmp_path / "cube.zarr"
    create_cube(str(url), grid, make_plan(grid.dims, grid.shape, 13, 2, shard_cells=4))
    execute(grid, str(url), False, Where(), silent)
    whole = contents(url)
    lost = chunks(url)[::3]
    for path in lost:
        halved(path)
    assert named(url) != []
    assert set(named(url)) <= {str(path.relative_to(url)) for path in lost}
    paradl.run(small, url)
    assert contents(url) == whole


def test_a_store_that_a_run_holds_is_left(url):
    halved(url / "memory" / BLOCK)
    before = contents(url)
    with hold_store(str(url)):
        report = verify(str(url))
    assert [place.variable for place in report.damaged] == ["memory"]
    assert "another run" in report.left
    assert contents(url) == before


def test_a_store_that_cannot_be_written_is_left(url, monkeypatch):
    halved(url / "memory" / BLOCK)
    before = contents(url)
    refuse_writes(monkeypatch, errno.EROFS)
    report = verify(str(url))
    assert [place.variable for place in report.damaged] == ["memory"]
    assert report.whole == 3
    assert "Read-only file system" in report.left
    assert contents(url) == before


def test_a_run_that_is_not_finished_is_whole(url):
    unmark(url, 1)
    halved(url / "memory" / BLOCK)  # of a block that is not done
    report = verify(str(url))
    assert (report.damaged, report.whole) == ((), 3)


def test_a_damaged_file_of_an_unfinished_block_is_replaced(url, small):
    whole = contents(url)
    unmark(url, 1)
    for damage, name in zip(
        DAMAGES.values(), ("memory", "limit", "comp_time", "comm_time"), strict=False
    ):
        damage(url / name / BLOCK)
    paradl.run(small, url)
    assert contents(url) == whole


@pytest.mark.parametrize(("text", "options"), [("", {}), ("{", {}), ("[]", {"extend": True})])
def test_damaged_metadata_of_the_store(text, options, url, small):
    (url / "zarr.json").write_text(text)
    before = contents(url)
    with pytest.raises(InputError, match=r"cube\.zarr: .*Zarr group") as error:
        paradl.run(small, url, **options)
    assert str(error.value).count("\n") == 0
    with pytest.raises(InputError):
        verify(str(url))
    assert contents(url) == before


def test_marks_that_cannot_be_read(url, small):
    halved(url / MARKS)
    for ask in (lambda: read_status(str(url)), lambda: paradl.run(small, url)):
        with pytest.raises(
            RunError, match=r"marks of finished blocks .* paradl status .* --verify"
        ):
            ask()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_dataset_reads_no_damaged_file(damage, url, small_url):
    """Nor one that is gone, which Zarr reads as configurations that cannot exist. Every file, but
    for damage that only differs in where it is: a sixth."""
    number = [*DAMAGES].index(damage)
    for path in (
        data(url) if damage in ("inner bits", "gone") else data(url)[number :: len(DAMAGES)]
    ):
        file = path.relative_to(url)
        if file.parts[0] == "summary":  # no variable of a Dataset
            continue
        DAMAGES[damage](path)
        with pytest.raises(RunError, match=rf"{file} .*paradl status .* --verify"):
            paradl.open_dataset(url).load()
        shutil.copy(small_url / file, path)
    paradl.open_dataset(url).load()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("question", [paradl.limits, paradl.best, paradl.regret])
def test_a_damaged_summary_answers_no_question(damage, question, url):
    DAMAGES[damage](url / "summary/statistics/c.0.1.0.0.0.0.0")
    with pytest.raises(RunError, match=r"summary/statistics/c.*paradl status .* --verify"):
        question(url)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_block_that_is_not_done_is_empty(damage, url):
    unmark(url, 1)
    DAMAGES[damage](url / "memory" / BLOCK)
    memory = paradl.open_dataset(url).memory.sel(dataset="imagenet", strategy="serial", pe=1)
    assert memory.sel(model="alexnet").isnull().all()


def test_a_dataset_reads_the_shards_of_earlier_cubes(url, small_url):
    """Of one chunk, after which comes its place."""
    root = json.loads((url / "zarr.json").read_text())
    array = root["consolidated_metadata"]["metadata"]["memory"]
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    shape = array["chunk_grid"]["configuration"]["chunk_shape"]
    shard = {"chunk_shape": shape, "codecs": array["codecs"], "index_codecs": index}
    array["codecs"] = [{"name": "sharding_indexed", "configuration": shard}]
    (url / "zarr.json").write_text(json.dumps(root))
    for path in (url / "memory").glob("c.*"):
        chunk = path.read_bytes()
        place = np.array([0, len(chunk)], "<u8").tobytes()
        path.write_bytes(chunk + place + google_crc32c.value(place).to_bytes(4, "little"))
    whole = paradl.open_dataset(small_url).memory
    np.testing.assert_array_equal(paradl.open_dataset(url).memory, whole)
    np.testing.assert_array_equal(
        paradl.open_dataset(url).memory[:, :, 0, 1, 2], whole[:, :, 0, 1, 2]
    )
    flipped(url / "memory" / BLOCK, 0.4)
    with pytest.raises(RunError, match="its checksum differs"):
        paradl.open_dataset(url).memory.load()


def test_the_command(url, cli):
    assert cli("status", url, "--verify")[0] == 0
    flipped(url / "comm_time" / BLOCK, 0.4)
    (url / "memory" / BLOCK).unlink()
    code, out, err = cli("status", url, "--verify")
    assert code == 1
    assert out.splitlines()[-2:] == [
        f"comm_time/{BLOCK}: its checksum differs; comm_time of model alexnet, dataset imagenet, "
        "system abci, strategy serial ... data+channel (3), pe 1 ... 8 (4), batch 16 ... 32 (2)",
        f"memory/{BLOCK}: the file is missing; memory of model alexnet, dataset imagenet, "
        "system abci, strategy serial ... data+channel (3), pe 1 ... 8 (4), batch 16 ... 32 (2)",
    ]
    assert err.startswith("paradl: 2 damaged files, 1 block; ")
    code, out, err = cli("status", url, "--verify")
    assert (code, err) == (0, "")  # the block is not done, and will be computed


QUESTIONS = {
    "best": (),
    "limits": ("--efficiency", "0.7"),
    "pareto": (),
    "best --worst-case system": (),
    "report": (),
    "diff": (),
    "export": (),
    "plot": ("--sel", "model=alexnet", "--sel", "dataset=imagenet", "--sel", "batch=32"),
}


@pytest.mark.parametrize("damage", ["inner bits", "gone"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_about_a_damaged_store(question, damage, url, small_url, tmp_path, cli):
    """Summaries, cells and labels: whatever a question reads first is named."""
    for path in data(url):
        DAMAGES[damage](path)
    places = {
        "plot": ("plot", "scaling", url, "-o", tmp_path / "plot.svg"),
        "report": ("report", url, "-o", tmp_path / "page.html"),
        "export": ("export", url, tmp_path / "cells.csv"),
        "diff": ("diff", url, small_url),
    }
    code, out, err = cli(*places.get(question, (*question.split(), url)), *QUESTIONS[question])
    assert (code, out) == (1, "")
    assert re.match(rf"paradl: {url}: [a-z_/]+/c\S+ cannot be read: ", err)
    assert f"with: paradl status {url} --verify" in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cube.zarr"]


@pytest.mark.parametrize("question", ["best", "limits", "best --worst-case system"])
def test_a_summary_does_not_hide_that_cells_are_gone(question, url, cli):
    (url / "comp_time" / BLOCK).unlink()
    code, out, err = cli(*question.split(), url)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"comp_time/{BLOCK}" in err


def test_every_chunk_has_a_checksum(small_url):
    group = zarr.open_group(small_url, mode="r")
    for _, node in group.members(max_depth=None):
        if isinstance(node, zarr.Array):
            assert (
                "crc32c"
                in json.dumps(node.metadata.to_dict()["codecs"], default=str).split("index_codecs")[
                    0
                ]
            ), node
