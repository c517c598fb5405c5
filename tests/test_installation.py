"""`paradl` is all that an installation adds, and it works beside modules of other people.

Environments are made and wheels built, which takes 25 s and downloads a package: `.ci/run` runs
these tests, and PARADL_TESTS_INSTALL=1 does.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from cubes import DATA

import paradl

pytestmark = pytest.mark.skipif(
    not os.environ.get("PARADL_TESTS_INSTALL"), reason="PARADL_TESTS_INSTALL=1 runs these"
)

ROOT = Path(__file__).parents[1]
PACKAGES = ("sweep", "kernels", "grids")
LINKS = [f"src/paradl/{name}" for name in PACKAGES]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
BUILD = ("--no-index", "--no-build-isolation")
ALONE = ("--no-deps", "--no-compile", "--ignore-installed")  # whatever BORROWED has
BORROWED = sysconfig.get_path("purelib")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def start(*command: object, cwd: Path, **variables: object) -> subprocess.Popen[str]:
    """Start a process that does not find the checkout by PYTHONPATH."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env=clean | {name: str(value) for name, value in variables.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*command: object, cwd: Path, **variables: object) -> str:
    """Return what a process prints, which has to succeed."""
    return finish(start(*command, cwd=cwd, **variables))


def finish(process: subprocess.Popen[str]) -> str:
    """Return what a process prints, which has to succeed."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


def list_files(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def copy_checkout(folder: Path) -> Path:
    """Copy what is packed, with the links as they are."""
    unwanted = shutil.ignore_patterns("__pycache__")
    folder.mkdir()
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy2(ROOT / name, folder)
    for name in ("src", *PACKAGES):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=unwanted)
    return folder


def build(kind: str, checkout: Path, folder: Path) -> Path:
    """Build a checkout's wheel or sdist, which is the only file of a folder."""
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder, cwd=checkout)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", *BUILD, "--no-deps", "-w", folder, ROOT, cwd=folder)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def flat(tmp_path_factory) -> Path:
    """A checkout as Windows makes it: a text file in place of each link."""
    folder = copy_checkout(tmp_path_factory.mktemp("flat") / "checkout")
    for link in LINKS:
        target = os.readlink(folder / link)
        (folder / link).unlink()
        (folder / link).write_text(target)
    return folder


def make_environment(folder: Path, *installed: object) -> Path:
    """Make an environment and return its Python; dependencies come from the tests' own."""
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/*/site-packages")
    (packages / "borrowed.pth").write_text(f"{BORROWED}\n")
    if installed:
        run(*PIP, "--python", python, "install", *ALONE, *BUILD, *installed, cwd=folder)
    return python


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The Python of an environment with the wheel."""
    return make_environment(tmp_path_factory.mktemp("installed"), wheel)


@pytest.fixture(scope="module", params=["checkout", "without links"])
def editable(request, flat, tmp_path_factory) -> tuple[Path, Path]:
    """The Python of an environment with an editable checkout, and the checkout."""
    checkout = ROOT if request.param == "checkout" else flat
    folder = tmp_path_factory.mktemp("editable")
    return make_environment(folder, "-e", checkout), checkout


def test_a_wheel_holds_the_package_alone(wheel):
    files = set(list_files(wheel))
    mine = {name for name in files if not name.startswith(f"paradl-{VERSION}.dist-info/")}
    paths = (path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file())
    expected = {
        f"paradl/{path.relative_to(ROOT)}" for path in paths if "__pycache__" not in path.parts
    }
    assert {"paradl/grids/catalogue/systems/abci.yaml", "paradl/sweep/report/page.css"} <= expected
    top = {"__init__.py", "__init__.pyi", "__main__.py", "py.typed"}
    assert mine == expected | {f"paradl/{name}" for name in top}
    with zipfile.ZipFile(wheel) as archive:
        assert not any(stat.S_ISLNK(file.external_attr >> 16) for file in archive.filelist)


def test_a_checkout_without_links_makes_the_same_wheel(wheel, flat, tmp_path):
    assert list_files(build("wheel", flat, tmp_path)) == list_files(wheel)


def test_an_sdist_makes_the_same_wheel(wheel, tmp_path):
    checkout = copy_checkout(tmp_path / "checkout")
    sdist = build("sdist", checkout, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert len(names) == len(set(names))
    assert not [name for name in names if "/src/paradl/" in name and name.count("/") > 3]
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert list_files(build("wheel", unpacked, tmp_path / "wheel")) == list_files(wheel)


TAKEN = ("sweep", "kernels", "grids", "tests", "benchmarks", "docs", "examples", "src")
FIND = f"""
import sys
from importlib.util import find_spec

sys.path.remove(sys.argv[1])
assert find_spec("paradl") is not None
print([name for name in {TAKEN} if find_spec(name) is not None])
"""


def test_an_editable_installation_adds_paradl_alone(editable, tmp_path):
    python, checkout = editable
    assert run(python, "-c", FIND, BORROWED, cwd=tmp_path) == "[]\n"
    code = "import paradl.kernels, paradl.sweep; print(paradl.kernels.__file__)"
    assert run(python, "-c", code, cwd=tmp_path) == f"{checkout / 'kernels' / '__init__.py'}\n"
    assert run(python, "-m", "paradl", "--version", cwd=tmp_path) == f"paradl {VERSION}\n"


USER = """
from multiprocessing import get_context

import grids, kernels, sweep

import paradl

if __name__ == "__main__":
    with get_context("spawn").Pool(1) as pool:
        space = {"dataset": "imagenet", "system": "abci"}
        answer = pool.apply(paradl.predict, ("alexnet", "data", 4, 32), space)
    print(paradl.__file__, answer["pe"], grids.MINE, kernels.MINE, sweep.MINE)
"""
PREDICT = (
    "predict --model alexnet --dataset imagenet --system abci --strategy data --pe 4 --batch 32"
)


@pytest.fixture
def users(tmp_path) -> Path:
    """A user's folder, whose modules have our folders' names."""
    (tmp_path / "kernels").mkdir()
    for name in ("sweep.py", "kernels/__init__.py", "grids.py"):
        (tmp_path / name).write_text("MINE = True\n")
    (tmp_path / "user.py").write_text(USER)
    return tmp_path


def test_an_installed_wheel_beside_modules_of_our_names(installed, users):
    """In a script, in the process that it spawns, and on the command line."""
    there = {"cwd": users, "PYTHONPATH": users}
    script = start(installed, "user.py", **there)
    predict = start(installed.with_name("paradl"), *PREDICT.split(), "--format", "json", **there)
    assert run(installed, "-m", "paradl", "--version", **there) == f"paradl {VERSION}\n"
    place, *answers = finish(script).split()
    assert Path(place).is_relative_to(installed.parents[1])
    assert answers == ["4", "True", "True", "True"]
    assert json.loads(finish(predict))["pe"] == 4


def test_an_editable_installation_beside_modules_of_our_names(editable, users):
    python, _ = editable
    code = "import grids, kernels, sweep, paradl; print(paradl.InputError, sweep.MINE)"
    error = "<class 'paradl.grids.reading.errors.InputError'>"
    assert run(python, "-c", code, cwd=users, PYTHONPATH=users) == f"{error} True\n"
    assert (
        run(python, "-m", "paradl", "--version", cwd=users, PYTHONPATH=users)
        == f"paradl {VERSION}\n"
    )


@contextmanager
def running(*command: object, cwd: Path) -> Iterator[None]:
    """A process that ends with the context."""
    process = start(*command, cwd=cwd)
    try:
        yield
    finally:
        process.terminate()
        process.communicate()


def test_a_remote_worker_computes_a_block(installed, tmp_path):
    """A scheduler and a worker that start in an empty folder, as on another machine."""
    address, spec, url = (tmp_path / name for name in ("address", "spec.json", "cube.zarr"))
    spec.write_text(json.dumps(DATA | {"axes": DATA["axes"] | {"model": "cosmoflow"}}))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    dask = (installed, "-m", "dask")
    found = ("--scheduler-file", address, "--no-dashboard")
    with (
        running(*dask, "scheduler", "--host", "127.0.0.1", "--port", 0, *found, cwd=elsewhere),
        running(*dask, "worker", *found, "--nthreads", 1, "--no-nanny", cwd=elsewhere),
    ):
        while not address.exists() or not address.read_text().endswith("}"):
            time.sleep(0.05)
        scheduler = json.loads(address.read_text())["address"]
        run(installed, "-m", "paradl", "sweep", spec, url, "--scheduler", scheduler, cwd=tmp_path)
    assert np.isfinite(paradl.open_dataset(url).comp_time.values).any()


def test_a_zip_is_refused(wheel, tmp_path):
    path = os.pathsep.join(map(str, (wheel, BORROWED)))
    process = start(sys.executable, "-c", "import paradl", cwd=tmp_path, PYTHONPATH=path)
    message = process.communicate()[1].splitlines()[-1]
    assert process.returncode == 1
    assert message.startswith(f"ImportError: {wheel}/paradl: ")
    assert message.endswith("pip install it")


def test_a_checkouts_own_folder_says_where_it_went():
    for name in PACKAGES:
        process = start(sys.executable, "-c", f"import {name}", cwd=ROOT)
        message = process.communicate()[1].splitlines()[-1]
        assert message.startswith("ImportError: paradl's modules are in one package: import paradl")
        assert name in message


KERNELS = """
from importlib.metadata import files

from kernels import get_kernel

assert callable(get_kernel)
assert all(path.locate().is_file() for path in files("kernels") if path.suffix == ".py")
"""


def test_beside_kernels_of_hugging_face(wheel, tmp_path):
    """Installed first, and whole after ours was installed over it and removed."""
    python = make_environment(tmp_path / "environment")
    pip = (*PIP, "--python", python)
    ours, theirs = (*ALONE, "--no-index", wheel), ("--no-compile", "kernels")
    for names in (theirs, ours):
        run(*pip, "install", *names, cwd=tmp_path)
    run(python, "-c", KERNELS, cwd=tmp_path)
    run(python.with_name("paradl"), *PREDICT.split(), cwd=tmp_path)
    run(*pip, "uninstall", "-y", "paradl", cwd=tmp_path)
    run(python, "-c", KERNELS, cwd=tmp_path)
