"""Any user's file is read, or refused with one short message.

A fixed corpus of broken and hostile files, also as attributes of a store.
"""

import json
import shutil
from pathlib import Path
from random import Random

import pytest
from broken_files import (
    HOSTILE,
    MOST_MESSAGE,
    fault,
    list_files,
    list_readers,
    make_cases,
    mutate_part,
)
from cubes import SMALL

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.root import METADATA
from paradl.sweep.cube.store import open_cube
from paradl.sweep.errors import RunError

CASES = 300
FORGED = 20


def test_a_corpus_of_broken_files(tmp_path):
    readers = list_readers()
    faults = [fault(case, readers, tmp_path) for case in make_cases(seed=1, count=CASES)]
    assert not list(filter(None, faults))


def test_the_corpus_has_every_file_and_is_the_same_each_time():
    cases = list(make_cases(seed=1, count=CASES))
    assert {case.file for case in cases} == set(list_files())
    assert cases == list(make_cases(seed=1, count=CASES))


def test_a_fault_is_a_fault(tmp_path):
    """What the corpus is judged by does tell an exception, a long message, and the time."""
    case = next(make_cases(seed=1, count=1))

    def told(reader) -> str:
        return fault(case, {case.file.suffix: reader}, tmp_path)

    def raising(error):
        def reader(path):
            raise error

        return reader

    assert told(lambda path: None) == ""
    assert told(raising(InputError("short"))) == ""
    assert "ZeroDivisionError" in told(raising(ZeroDivisionError()))
    assert "a message of" in told(raising(InputError("\n" * 20)))


@pytest.mark.parametrize("name", ["spec.yaml", "runs.csv"])
@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files_are_refused(tmp_path, name, content):
    readers = {".yaml": "examples", ".csv": "measured"}
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        list_readers()[readers[path.suffix]](path)
    assert len(str(error.value)) < MOST_MESSAGE


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    axes = SMALL["axes"] | {"model": "alexnet", "dataset": "imagenet", "strategy": "data"}
    path = tmp_path_factory.mktemp("forged") / "cube.zarr"
    paradl.run({"oracle": "paper", "axes": axes}, path)
    return path


@pytest.mark.parametrize("attribute", ["paradl_spec", "paradl_plan", "paradl_versions"])
@pytest.mark.parametrize("seed", range(FORGED // 2))
def test_a_store_whose_attributes_are_forged(store, tmp_path, attribute, seed):
    copy = shutil.copytree(store, tmp_path / "copy.zarr")
    metadata = json.loads((copy / METADATA).read_text())
    written = json.loads(metadata["attributes"][attribute])
    metadata["attributes"][attribute] = json.dumps(mutate_part(written, Random(seed)))
    (copy / METADATA).write_text(json.dumps(metadata))
    result = ""
    try:
        open_cube(str(copy))
    except (InputError, RunError) as error:
        result = str(error)
    assert len(result) < MOST_MESSAGE
