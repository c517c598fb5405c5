"""Sweeps into an S3 bucket: a real server on this machine, spoken to over HTTP."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import fsspec
import pytest
import xarray as xr
import zarr
from cubes import SMALL, arrays, unmark
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from s3fs import S3FileSystem
from werkzeug.serving import BaseWSGIServer, make_server

import sweep
from grids.reading.errors import InputError
from sweep.engine.verification import verify
from sweep.errors import RunError
from sweep.questions.status import read_status

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "someone",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_CONFIG_FILE": "none",
    "AWS_SHARED_CREDENTIALS_FILE": "none",
    "AWS_EC2_METADATA_DISABLED": "true",
}
# One block, of the shape of SMALL's: they share a program.
ONE: dict[str, Any] = {
    "oracle": "paper",
    "axes": SMALL["axes"] | {"model": "alexnet", "dataset": "imagenet"},
}


@contextmanager
def started() -> Iterator[tuple[BaseWSGIServer, str]]:
    """An S3 server at a port of its own, and its address; all of them share their buckets.

    moto's own server has all of AWS, and seeks the service of each request for as long as S3 takes
    to answer it.
    """
    application = create_backend_app("s3")
    server = make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler
    )
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server, f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()


@pytest.fixture(scope="module", autouse=True)
def endpoint() -> Iterator[str]:
    """A server with a bucket, found as users' are: by environment variables."""
    with started() as (_, address), pytest.MonkeyPatch.context() as patch:
        for name, value in (ENVIRONMENT | {"AWS_ENDPOINT_URL": address}).items():
            patch.setenv(name, value)
        S3FileSystem().mkdir("sweeps")
        yield address


@pytest.fixture
def url(request) -> str:
    """A place for one test's cube."""
    return f"s3://sweeps/{request.node.name}.zarr"


@pytest.fixture(scope="module")
def cube_url() -> str:
    """The whole of SMALL in a bucket."""
    sweep.run(SMALL, "s3://sweeps/cube.zarr")
    return "s3://sweeps/cube.zarr"


@pytest.fixture
def copy_url(url, cube_url) -> str:
    """A copy of it, for one test to change."""
    S3FileSystem().copy(cube_url, url, recursive=True)
    return url


def forget_blocks(url: str) -> None:
    """Leave the cube as one of which no block is done."""
    unmark(url, 0, 1, 2, 3)
    files = S3FileSystem()
    for name in ("comp_time", "serial_time"):
        files.rm(files.glob(f"{url}/{name}/c.*"))


@pytest.fixture
def options(monkeypatch) -> dict[str, object]:
    """What ~/.config/fsspec/*.json says of S3; fsspec makes a new client for new options."""
    result: dict[str, object] = {}
    monkeypatch.setitem(fsspec.config.conf, "s3", result)
    return result


@contextmanager
def cut_short(plan, done):
    """A run that is interrupted at its second block."""

    def advance(block: int) -> None:
        nonlocal done
        done += 1
        if done == 2:
            raise KeyboardInterrupt

    yield advance


def test_the_cube_of_a_disk(cube_url, small_url):
    assert arrays(cube_url) == arrays(small_url)
    xr.testing.assert_identical(
        sweep.open_dataset(cube_url).compute(), xr.open_zarr(cube_url).compute()
    )


def test_resume_by_a_worker(copy_url, small_url, monkeypatch):
    url = copy_url
    forget_blocks(url)
    monkeypatch.setattr("sweep.engine.block.blocks_at_once", lambda *_: 1)
    with pytest.raises(KeyboardInterrupt):
        sweep.run(SMALL, url, progress=cut_short)
    status = read_status(url)
    assert (status["blocks"], status["blocks_done"]) == (4, 2)
    resumed: list[int] = []

    @contextmanager
    def noted(plan, done):
        yield resumed.append

    sweep.run(SMALL, url, workers=1, progress=noted)
    assert len(resumed) == 2
    assert read_status(url)["complete"]
    assert arrays(url) == arrays(small_url)


def test_another_sweep_is_refused(cube_url):
    with pytest.raises(InputError, match="another sweep"):
        sweep.run(ONE, cube_url)


def test_a_store_gains_values_and_another_sweep_takes_its_place(copy_url):
    longer = {"oracle": "paper", "axes": SMALL["axes"] | {"pe": [1, 2, 4, 8, 9, 10, 11, 12]}}
    dataset = sweep.run(longer, copy_url, extend=True)
    assert dataset.comp_time.sel(pe=9).notnull().any()
    assert read_status(copy_url)["complete"]
    assert sweep.run(ONE, copy_url, overwrite=True).model.values.tolist() == ["alexnet"]


def test_what_is_not_ours_is_left(url):
    zarr.create_group(url, attributes={"owner": "someone"})
    with pytest.raises(InputError, match="left untouched"):
        sweep.run(ONE, url, overwrite=True)
    assert dict(zarr.open_group(url, mode="r").attrs) == {"owner": "someone"}


def test_questions(cube_url, small_url, paradl):
    there = paradl("best", cube_url, "--format", "json")
    assert there == paradl("best", small_url, "--format", "json")


def test_an_address_from_a_configuration_file(cube_url, endpoint, options, monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    options.update(endpoint_url=endpoint, key="someone", secret="secret")
    assert read_status(cube_url)["complete"]


@pytest.mark.parametrize("command", ["sweep", "status"])
def test_no_such_bucket(command, paradl, spec_file):
    spec = [spec_file(ONE)] if command == "sweep" else []
    code, out, err = paradl(command, *spec, "s3://nowhere/cube.zarr")
    assert (code, out) == (2, "")
    assert err.startswith("paradl: s3://nowhere/cube.zarr: ")
    assert "'nowhere'" in err


def test_no_cube_in_the_bucket(url, paradl):
    code, _, err = paradl("status", url)
    assert code == 2
    assert err.startswith(f"paradl: {url}: ")


def test_a_bucket_that_one_may_not_list(url, monkeypatch):
    def forbidden(*_: object) -> None:
        raise PermissionError("Forbidden")

    monkeypatch.setattr(S3FileSystem, "info", forbidden)
    with pytest.raises(InputError, match="no cube here"):
        read_status(url)


def test_no_cube_at_a_web_server(endpoint):
    with pytest.raises(InputError, match="no cube here"):
        read_status(f"{endpoint}/nowhere/cube.zarr")


def test_no_credentials(url, options, monkeypatch, paradl, spec_file):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    options.update(use_ssl=False)
    code, _, err = paradl("sweep", spec_file(ONE), url)
    assert code == 2
    assert err.startswith(f"paradl: {url}: ")
    assert err.count("\n") == 1


def test_no_client(monkeypatch, paradl, spec_file):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    code, _, err = paradl("sweep", spec_file(ONE), "s3a://sweeps/cube.zarr")
    assert code == 2
    assert err.startswith("paradl: s3a://sweeps/cube.zarr: ")
    assert "s3fs" in err


def test_no_such_kind_of_store(paradl, spec_file):
    code, _, err = paradl("sweep", spec_file(ONE), "cloud://sweeps/cube.zarr")
    assert code == 2
    assert "cloud://" in err
    assert err.count("\n") == 1


def test_a_store_that_goes_away(copy_url, options, monkeypatch):
    forget_blocks(copy_url)
    monkeypatch.setattr(S3FileSystem, "retries", 1)  # a user's client tries for a while
    with started() as (server, address):
        options.update(endpoint_url=address, config_kwargs={"retries": {"max_attempts": 0}})

        @contextmanager
        def unplugged(plan, done):
            yield lambda block: server.shutdown()

        with pytest.raises(RunError, match=r"writing failed \(Could not connect.*kept"):
            sweep.run(SMALL, copy_url, progress=unplugged)


def test_a_damaged_object_is_named_and_made_anew(copy_url, small_url, monkeypatch):
    url = copy_url
    name = "comp_time/c.0.1.0.0.0.0"
    files = fsspec.filesystem("s3")
    stored = files.cat(f"{url}/{name}")
    files.pipe(f"{url}/{name}", stored[:-9] + b"?" + stored[-8:])
    files.rm(f"{url}/memory/c.1.0.0.0.0.0")
    report = verify(url)
    assert [damage.file for damage in report.damaged] == [name, "memory/c.1.0.0.0.0.0"]
    assert (report.whole, report.left) == (2, "")
    assert read_status(url)["blocks_done"] == 2
    sweep.run(SMALL, url)
    assert arrays(url) == arrays(small_url)
    monkeypatch.setattr("sweep.cube.guarded_store.MAX_METADATA_BYTES", 100_000)
    name = "summary/statistics/zarr.json"
    files.pipe(f"{url}/{name}", b" " * 100_001)
    (damage,) = verify(url).damaged
    assert damage.file == name
    assert "100,001 bytes" in damage.what
