"""What every test runs under: JAX strict, random examples, a home of its own."""

import gc
import os
import shutil
import site
import sys
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import jax
import pytest
import typer.main
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from shapes import ARE_CHECKED, install_checks

# Programs of tests are compiled more often than they run: without LLVM's optimisations and XLA's
# newer emitters the four of a cube (tests/helpers/cubes.py, MIXED) take 4.4 s to compile, and not
# 10.2 s. Read when JAX first computes; processes that tests start inherit it. XLA ends the process
# over a flag that it does not know.
# With PARADL_TESTS_AS_USERS=1 programs are compiled as for users.
AS_USERS = bool(os.environ.get("PARADL_TESTS_AS_USERS"))
if jax.version.__version_info__ < (0, 11) and not AS_USERS:
    os.environ.setdefault(
        "XLA_FLAGS",
        "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 "
        # Three files that compile most: 39 -> 33 s of CPU.
        "--xla_cpu_parallel_codegen_split_count=1 --xla_llvm_disable_expensive_passes=true "
        # As local workers have it, which then find the programs of other processes.
        "--xla_cpu_multi_thread_eigen=false",
    )

# As commands have it (sweep/cli/main.py): of the suite's processes, which import numpy later.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A home of the run's own, for its processes and those that they start: programs, fonts and settings
# are written there, and the user's own are neither read nor touched. The first process makes it.
HOME = "PARADL_TEST_HOME"
IS_FIRST = HOME not in os.environ
if IS_FIRST:
    home = tempfile.mkdtemp(prefix="paradl-tests-")
    os.environ |= {HOME: home, "PYTHONUSERBASE": site.getuserbase()}
    os.environ |= {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache"}
    os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
    os.environ["DASK_TEMPORARY_DIRECTORY"] = f"{home}/dask"
    os.environ |= {"XDG_CONFIG_HOME": f"{home}/config", "XDG_DATA_HOME": f"{home}/data"}


def pytest_unconfigure() -> None:
    """Remove the run's home."""
    if IS_FIRST:
        shutil.rmtree(os.environ[HOME], ignore_errors=True)


# Their files are short, and many: run last, they let both of the suite's processes end together.
LAST = ("grids", "kernels")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without seeking garbage: all that is imported and collected stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files of lower floors last."""
    items.sort(key=lambda item: item.path.relative_to(Path(__file__).parent).parts[0] in LAST)


jax.config.update("jax_compilation_cache_dir", None)  # JAX has read a user's own by now

# Before anything imports the kernels.
if ARE_CHECKED:
    install_checks()

# A command line is built once, and not by each test that runs it: 0.1 s.
typer.main.get_command = cache(typer.main.get_command)

# Tracing makes millions of small objects that live: seeking garbage among them took 7 % of the time
# of tests that compile.
gc.set_threshold(200_000, 20, 100)

# No silent conversion between integers, floats and flags, of one width or another. Ranks do differ,
# by design: what belongs to layers, stages or levels leads the cells (kernels/arrays.py).
jax.config.update("jax_numpy_dtype_promotion", "strict")
# Nor in processes that tests start, which else would not find this one's programs.
if not AS_USERS:
    os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"

# A shared machine makes any deadline flaky, and a failure must come back when one looks for it.
# Those that name no number (budgets.py) are quick: 40 examples.
settings.register_profile("paradl", deadline=None, derandomize=True, max_examples=40)
# Other examples in each run, and more (budgets.py): what fails is kept, and tried first next time.
settings.register_profile("explore", deadline=None, derandomize=False, max_examples=1000)
settings.load_profile("paradl")
# Hypothesis draws the constants of our modules that are imported by then, so examples depended on
# the tests that had run before in the process: the same suite failed in one order alone.
vars(providers)["is_local_module_file"] = lambda file: False


# Linux gives a process 65,530 maps of memory, and each compiled program takes some. A process with
# the programs of all tests ended in a segmentation fault inside XLA.
MOST_MAPS = 30_000
MAPS = Path("/proc/self/maps")


@pytest.fixture(scope="module", autouse=True)
def drop_programs() -> Iterator[None]:
    """Forget compiled programs between files, once there are many.

    What else lives is not searched for garbage again: all of it takes 1.5 s each time that tests,
    Hypothesis or pytest ask.
    """
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        gc.unfreeze()
        jax.clear_caches()
    gc.collect(1)
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def share_programs() -> None:
    """Both of the suite's processes, and those that they start, compile each program once."""
    from paradl.sweep.engine.resources import keep_programs

    keep_programs()


@pytest.fixture(scope="session", autouse=True)
def share_bytecode() -> None:
    """Processes that tests start compile what they import once, where this one may write none.

    Not the suite's own two: they find the bytecode of libraries beside them (11 s of CPU).
    """
    if sys.dont_write_bytecode:
        os.environ["PYTHONPYCACHEPREFIX"] = f"{os.environ[HOME]}/bytecode"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as they like, whatever the terminal that tests run in."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def float64() -> Iterator[None]:
    """Double precision, for a module of tests."""
    with jax.enable_x64(True):
        yield
