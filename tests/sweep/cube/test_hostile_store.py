"""Stores that somebody else made, or forged: refused before anything in them is decoded or done."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zarr
from cubes import SMALL

import paradl
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.store import open_cube
from paradl.sweep.engine.block import run_block
from paradl.sweep.errors import RunError


@pytest.fixture
def url(small_url, tmp_path) -> Path:
    """A store with the whole of SMALL, to forge."""
    return Path(shutil.copytree(small_url, tmp_path / "cube.zarr"))


def forge(url: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the root's metadata."""
    root = json.loads((url / "zarr.json").read_text())
    change(root)
    (url / "zarr.json").write_text(json.dumps(root))


class Touch:
    """What an attacker pickles: unpickling it runs a command."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object]]:
        return Path.touch, (self.path,)


def test_an_older_format_with_a_filter_that_runs_code(url, tmp_path, cli, monkeypatch):
    """Even where the codec's own library would allow it."""
    monkeypatch.setenv("NUMCODECS_ALLOW_UNSAFE_PICKLE_DECODE", "1")
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True)
    attributes = json.loads((url / "zarr.json").read_text())["attributes"]
    old, ran = tmp_path / "old.zarr", tmp_path / "ran"
    old.mkdir()
    (old / ".zgroup").write_text('{"zarr_format": 2}')
    (old / ".zattrs").write_text(json.dumps(attributes))
    for name in ("comp_time", "progress/done", "summary/statistics"):
        (old / name).mkdir(parents=True)
        (old / name / ".zarray").write_text(
            json.dumps(
                {
                    "zarr_format": 2,
                    "shape": [1],
                    "chunks": [1],
                    "dtype": "|O",
                    "compressor": None,
                    "fill_value": None,
                    "order": "C",
                    "filters": [{"id": "pickle", "protocol": 4}],
                }
            )
        )
        (old / name / "0").write_bytes(pickle.dumps(Touch(ran)))
    code, out, err = cli("best", old)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert not ran.exists()


def test_a_codec_that_is_not_ours(url):
    def forged(root: dict[str, Any]) -> None:
        arrays = root["consolidated_metadata"]["metadata"]
        arrays["pe"]["codecs"][-1] = {"name": "gzip", "configuration": {"level": 1}}

    forge(url, forged)
    with pytest.raises(InputError, match=r"pe .*GzipCodec"):
        open_cube(str(url))


def nest(array: dict[str, Any]) -> dict[str, Any]:
    """Put an array's chunks into shards of one, as earlier cubes have them."""
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    chunk = [*array["chunk_grid"]["configuration"]["chunk_shape"]]
    shard = {"chunk_shape": chunk, "codecs": array["codecs"], "index_codecs": index}
    array["codecs"] = [{"name": "sharding_indexed", "configuration": shard}]
    return shard


def test_a_codec_that_is_not_ours_inside_a_shard(url):
    def forged(root: dict[str, Any]) -> None:
        shard = nest(root["consolidated_metadata"]["metadata"]["memory"])
        shard["codecs"].append({"name": "gzip", "configuration": {"level": 1}})

    forge(url, forged)
    with pytest.raises(InputError, match=r"memory .*GzipCodec"):
        open_cube(str(url))


PLANS = {
    "gone": None,
    "no JSON": "{",
    "a list": "[1]",
    "of few dimensions": '{"shard": [1], "chunk": [1], "layers": 1}',
    "empty": "{}",
    "no numbers": '{"shard": "all", "chunk": 1, "layers": {}}',
    "zero": '{"shard": [1,1,1,3,4,0], "chunk": [1,1,1,3,4,0], "layers": 1}',
    "huge": '{"shard": [1,1,1,3,4,1e300], "chunk": [1,1,1,3,4,2], "layers": 1}',
}


@pytest.mark.parametrize("plan", PLANS)
def test_a_forged_plan(plan, url, cli):
    def forged(root: dict[str, Any]) -> None:
        if PLANS[plan] is None:
            del root["attributes"]["paradl_plan"]
        else:
            root["attributes"]["paradl_plan"] = PLANS[plan]

    forge(url, forged)
    code, out, err = cli("status", url)
    assert (code, out) == (2, "")
    assert err.startswith(f"paradl: {url}: ")
    assert (err.count("\n"), len(err) < 1000) == (1, True)


@pytest.mark.parametrize("versions", [None, "{", "[]", '{"paradl": {}}'])
def test_forged_versions(versions, url):
    open_cube(str(url), "r+").mark([1], done=False)

    def forged(root: dict[str, Any]) -> None:
        del root["attributes"]["paradl_versions"]
        root["attributes"] |= {} if versions is None else {"paradl_versions": versions}

    forge(url, forged)
    with pytest.raises(InputError, match=r"paradl_versions cannot be read|started by other code"):
        paradl.run(SMALL, url)


@pytest.mark.parametrize("key", ["model", "dataset", "system", "calibration"])
@pytest.mark.parametrize(
    "reference",
    ["/etc/hostname", "abci", {"family": {"name": "/etc/hostname"}}],
)
def test_a_stored_spec_names_nothing_outside(key, reference, url):
    """Whoever sends a store does not choose which files are opened."""
    definition: dict[str, Any] = open_cube(str(url)).grid.definition()
    where = definition if key == "calibration" else definition["axes"]
    where[key] = reference if key == "calibration" else [reference]
    with pytest.raises(InputError, match=rf"the store's spec: {key}: expected a whole definition"):
        Grid.from_definition(definition)

    def forged(root: dict[str, Any]) -> None:
        root["attributes"]["paradl_spec"] = json.dumps(definition)

    forge(url, forged)
    with pytest.raises(InputError, match=r"cube\.zarr: .*spec"):
        open_cube(str(url))


def test_a_link_in_a_store_is_not_followed_by_overwrite(url, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "notes.txt").write_text("mine")
    (url / "memory" / "elsewhere").symlink_to(precious)
    before = sorted(map(str, url.rglob("*")))
    with pytest.raises(InputError, match="elsewhere: "):
        paradl.run(SMALL, url, overwrite=True)
    assert sorted(map(str, url.rglob("*"))) == before
    assert (precious / "notes.txt").read_text() == "mine"
    assert open_cube(str(url)).read_done().all()


@pytest.mark.parametrize("question", [("limits",), ("best",), ("limits", "--sel", "pe=2,4")])
def test_a_file_that_is_gone_drops_no_model_in_silence(question, url, cli):
    name = "summary/statistics" if "--sel" not in question else "comp_time"
    (lost,) = (url / name).glob("c.0.1.*")
    lost.unlink()
    code, out, err = cli(question[0], url, *question[1:])
    assert (code, out) == (1, "")
    assert f"{lost.relative_to(url)}" in err
    assert f"paradl status {url} --verify" in err
    assert err.count("\n") == 1


def test_status_counts_summaries_that_are_gone(url, cli):
    for lost in (url / "summary/statistics").glob("c.0.1.*"):
        lost.unlink()
    code, out, _ = cli("status", url, "--format", "json")
    answer = json.loads(out)
    assert (code, answer["complete"], answer["summaries_missing"]) == (0, False, 1)
    assert cli("status", url, "--verify")[0] == 1
    paradl.run(SMALL, url)
    assert json.loads(cli("status", url, "--format", "json")[1])["complete"]


def test_status_of_a_store_without_its_summary(url, cli):
    shutil.rmtree(url / "summary")
    code, out, _ = cli("status", url, "--format", "json")
    answer = json.loads(out)
    assert (code, answer["complete"], answer["summaries_missing"]) == (0, False, 2)


def replace_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_chunks_by_fifos(url: Path) -> None:
    """Of the summary and of times."""
    for path in (*url.glob("summary/statistics/c.*"), *url.glob("*_time/c.*")):
        replace_by_fifo(path)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def lengthen(path: Path) -> None:
    """A sparse file of a terabyte, which no disk holds: all of it reads as zeros."""
    os.truncate(path, 2**40)


CHANGES = [replace_by_fifo, replace_by_folder, replace_by_device, lengthen]


@pytest.mark.parametrize("change", CHANGES)
def test_only_plain_files_of_a_credible_size_are_read(change, url, cli):
    """Refused, and not waited for, nor read into memory."""
    chunk = min((url / "comp_time").glob("c.*"))
    damaged = (url / "pe/c/0", chunk)
    for path in damaged:
        change(path)
    code, out, err = cli("status", url, "--verify", "--format", "json")
    assert (code, err.count("\n")) == (1, 1)
    assert all(str(path.relative_to(url)) in out for path in damaged)
    paradl.run(SMALL, url)
    assert all(path.is_file() and not path.is_symlink() for path in damaged)
    assert cli("status", url, "--verify")[0] == 0


@pytest.mark.parametrize("change", CHANGES)
def test_a_root_that_is_no_plain_file(change, url, cli):
    change(url / "zarr.json")
    code, out, err = cli("status", url)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"paradl: {url}: ")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("limits", "not a regular file"),
        ("best --worst-case system", "not a regular file"),
        ("pareto", "comp_time/c.0"),
    ],
)
def test_pipes_in_place_of_files_are_not_waited_for(command, message, url, cli):
    replace_chunks_by_fifos(url)
    code, out, err = cli(*command.split(), url)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert message in err


def test_bottlenecks_read_no_chunk(url, cli):
    """They follow from the spec of the store."""
    replace_chunks_by_fifos(url)
    slice_ = ("--sel", "model=alexnet", "--sel", "strategy=data", "--sel", "batch=16")
    assert cli("bottleneck", url, *slice_)[0] == 0


def test_a_pipe_in_place_of_a_block_that_is_not_done(url, cli):
    open_cube(str(url), "r+").mark(range(4), done=False)
    for path in url.glob("summary/statistics/c.*"):
        replace_by_fifo(path)
    code, _, err = cli("best", url, "--worst-case", "system")
    assert code == 1
    assert "only 0 of 4 blocks done" in err


def test_a_forged_length_of_an_axis(url):
    """Refused before its chunks are listed, or an index of it is made."""

    def forged(root: dict[str, Any]) -> None:
        root["consolidated_metadata"]["metadata"]["pe"]["shape"] = [10**15]

    forge(url, forged)
    with pytest.raises(InputError, match=r"'pe'"):
        open_cube(str(url))


@pytest.mark.parametrize("name", ["pe", "comp_time"])
@pytest.mark.parametrize("size", [0, 10**12])
@pytest.mark.parametrize("sharded", [False, True])
def test_a_forged_size_of_chunks(name, size, sharded, url):
    """Refused before a chunk of it is made in memory."""

    def forged(root: dict[str, Any]) -> None:
        array = root["consolidated_metadata"]["metadata"][name]
        cut = nest(array) if sharded else array["chunk_grid"]["configuration"]
        cut["chunk_shape"] = [size] * len(cut["chunk_shape"])

    forge(url, forged)
    with pytest.raises(InputError) as error:
        open_cube(str(url))
    assert str(url) in str(error.value)


def test_files_that_may_not_be_read(url, cli, monkeypatch):
    """As the system refuses them to others than root, who reads everything."""
    path_open, path_bytes = Path.open, Path.read_bytes

    def refuse(read: Callable[..., Any]) -> Callable[..., Any]:
        def read_or_refuse(path: Path, *arguments: Any, **options: Any) -> Any:
            if path.parent == url / "memory":
                raise PermissionError(13, "Permission denied", str(path))
            return read(path, *arguments, **options)

        return read_or_refuse

    monkeypatch.setattr(Path, "open", refuse(path_open))
    monkeypatch.setattr(Path, "read_bytes", refuse(path_bytes))
    code, out, err = cli("status", url, "--verify")
    assert (code, err.count("\n")) == (1, 1)
    assert "Permission denied" in out


def test_other_code_does_not_go_on(url):
    """Answers of other sources may differ in their last bits."""
    open_cube(str(url), "r+").mark([1], done=False)

    def forged(root: dict[str, Any]) -> None:
        versions = json.loads(root["attributes"]["paradl_versions"]) | {"code": "0123"}
        root["attributes"]["paradl_versions"] = json.dumps(versions)

    forge(url, forged)
    with pytest.raises(InputError, match=r"code 0123 there, \w{16} here"):
        paradl.run(SMALL, url)
    with pytest.raises(RunError, match="other code"):
        run_block(str(url), open_cube(str(url)).identity, 1)


def test_the_arrays_own_metadata_are_no_way_in(url):
    """Of a store whose root has lost its arrays, the arrays' own metadata are not believed."""
    forge(url, lambda root: root.pop("consolidated_metadata"))
    with pytest.raises(InputError, match=r"damaged: zarr\.json"):
        open_cube(str(url))
    assert zarr.open_group(url, mode="r").attrs["paradl_id"]
