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
from cubes import SMALL, arrays
from distributed import LocalCluster
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from s3fs import S3FileSystem
from werkzeug.serving import BaseWSGIServer, make_server

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.engine.verification import verify
from paradl.sweep.errors import RunError
from paradl.sweep.questions.status import read_status

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
    """The whole of SMALL in a bucket, by a run that was interrupted and one of a worker."""
    url = "s3://sweeps/cube.zarr"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paradl.sweep.engine.block.blocks_at_once", lambda *_: 1)
        with pytest.raises(KeyboardInterrupt):
            paradl.run(SMALL, url, progress=cut_short)
    status = read_status(url)
    assert (status["blocks"], status["blocks_done"]) == (4, 2)
    with LocalCluster(1, processes=False, dashboard_address=":0", protocol="tcp") as cluster:
        paradl.run(SMALL, url, scheduler=cluster.scheduler_address)
    return url


@pytest.fixture
def copy_url(url, cube_url) -> str:
    """A copy of it, for one test to change."""
    S3FileSystem().copy(cube_url, url, recursive=True)
    return url


@pytest.fixture
def options(monkeypatch) -> dict[str, object]:
    """What ~/.config/fsspec/*.json says of S3; fsspec makes a new client for new options."""
    result: dict[str, object] = {}
    monkeypatch.setitem(fsspec.config.conf, "s3", result)
    return result


@contextmanager
def cut_short(plan, done):
    """A run that is interrupted at its second block."""

    count = 0

    def advance(block: int) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt

    yield advance


def test_an_interrupted_sweep_is_that_of_a_disk(cube_url, small_url):
    assert read_status(cube_url)["complete"]
    assert arrays(cube_url) == arrays(small_url)


def test_plain_xarray_opens_it(cube_url, small_url):
    name = "comp_time"
    xr.testing.assert_identical(
        xr.open_zarr(cube_url)[name].compute(), paradl.open_dataset(small_url)[name].compute()
    )


def test_another_sweep_is_refused(cube_url):
    with pytest.raises(InputError, match="another sweep"):
        paradl.run(ONE, cube_url)


def test_a_store_gains_values_and_another_sweep_takes_its_place(copy_url):
    longer = {"oracle": "paper", "axes": SMALL["axes"] | {"pe": [1, 2, 4, 8, 9, 10, 11, 12]}}
    dataset = paradl.run(longer, copy_url, extend=True)
    assert dataset.comp_time.sel(pe=9).notnull().any()
    assert read_status(copy_url)["complete"]
    assert paradl.run(ONE, copy_url, overwrite=True).model.values.tolist() == ["alexnet"]


def test_what_is_not_ours_is_left(url):
    zarr.create_group(url, attributes={"owner": "someone"})
    with pytest.raises(InputError, match="left untouched"):
        paradl.run(ONE, url, overwrite=True)
    assert dict(zarr.open_group(url, mode="r").attrs) == {"owner": "someone"}


def test_questions(cube_url, small_url, cli):
    there = cli("best", cube_url, "--format", "json")
    assert there == cli("best", small_url, "--format", "json")


def test_an_address_from_a_configuration_file(cube_url, endpoint, options, monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    options.update(endpoint_url=endpoint, key="someone", secret="secret")
    assert read_status(cube_url)["complete"]


@pytest.mark.parametrize("command", ["sweep", "status"])
def test_no_such_bucket(command, cli, spec_file):
    spec = [spec_file(ONE)] if command == "sweep" else []
    code, out, err = cli(command, *spec, "s3://nowhere/cube.zarr")
    assert (code, out) == (2, "")
    assert err.startswith("paradl: s3://nowhere/cube.zarr: ")
    assert "'nowhere'" in err


def test_no_cube_in_the_bucket(url, cli):
    code, _, err = cli("status", url)
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


def test_no_credentials(url, options, monkeypatch, cli, spec_file):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    options.update(use_ssl=False)
    code, _, err = cli("sweep", spec_file(ONE), url)
    assert code == 2
    assert err.startswith(f"paradl: {url}: ")
    assert err.count("\n") == 1


def test_no_client(monkeypatch, cli, spec_file):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    code, _, err = cli("sweep", spec_file(ONE), "s3a://sweeps/cube.zarr")
    assert code == 2
    assert err.startswith("paradl: s3a://sweeps/cube.zarr: ")
    assert "s3fs" in err


def test_no_such_kind_of_store(cli, spec_file):
    code, _, err = cli("sweep", spec_file(ONE), "cloud://sweeps/cube.zarr")
    assert code == 2
    assert "cloud://" in err
    assert err.count("\n") == 1


def test_a_store_that_goes_away(url, options, monkeypatch):
    monkeypatch.setattr(S3FileSystem, "retries", 1)  # a user's client tries for a while
    with started() as (server, address):
        options.update(endpoint_url=address, config_kwargs={"retries": {"max_attempts": 0}})

        @contextmanager
        def unplugged(plan, done):
            yield lambda block: server.shutdown()

        with pytest.raises(RunError, match=r"writing failed \(Could not connect.*kept"):
            paradl.run(ONE, url, progress=unplugged)


def test_damaged_objects_are_named_and_made_anew(copy_url):
    url, files = copy_url, fsspec.filesystem("s3")
    names = ["comp_time/c.0.1.0.0.0.0", "memory/c.1.0.0.0.0.0"]
    changed, gone = (f"{url}/{name}" for name in names)
    whole = files.cat([changed, gone])
    files.pipe(changed, files.cat(changed)[:-9] + b"?" + files.cat(changed)[-8:])
    files.rm(gone)
    for name in names:
        with pytest.raises(RunError, match=f"{name} .*paradl status {url} --verify"):
            paradl.open_dataset(url)[name.partition("/")[0]].load()
    report = verify(url)
    assert [damage.file for damage in report.damaged] == names
    assert (report.whole, report.left) == (2, "")
    paradl.run(SMALL, url)
    assert read_status(url)["complete"]
    assert files.cat([changed, gone]) == whole
