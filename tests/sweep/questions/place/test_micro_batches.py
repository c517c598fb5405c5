"""Steps in micro-batches: how samples are divided, stages to begin with, times of models."""

from pathlib import Path
from typing import Any

import pytest

import paradl
from paradl.grids.reading.errors import InputError

CHAIN = """name: chain
batch: 32
operators:
  first:  {forward: 1 ms, backward: 2 ms, kept: 8 MB}
  second: {forward: 1 ms, backward: 2 ms, kept: 8 MB}
tensors:
  - {maker: first, takers: second, bytes: 8 MB}
"""
HERE: Any = {"system": "dgx1-v100", "effort": 5}


@pytest.fixture
def chain(tmp_path: Path) -> str:
    path = tmp_path / "chain.yaml"
    path.write_text(CHAIN)
    return str(path)


@pytest.mark.parametrize(("count", "message"), [(0, "at least 1"), (5, "32 is not divisible by 5")])
def test_what_divides_nothing_is_refused(count, message, chain):
    with pytest.raises(InputError, match=f"micro_batches: .*{message}"):
        paradl.place(chain, 2, micro_batches=count, **HERE)


def test_a_chain_by_hand(chain):
    plain = paradl.place(chain, 2, **HERE)
    assert plain["micro_batches"] == 1
    assert plain["speedup"] == pytest.approx(1.0)
    answer = paradl.place(chain, 2, micro_batches=4, **HERE)
    message = 3.4e-6 + 2e6 / 50e9
    assert answer["step_time"] == pytest.approx(5 * 0.75e-3 + 2 * message)
    assert answer["serial_time"] == pytest.approx(6e-3)
    assert answer["speedup"] == pytest.approx(6e-3 / answer["step_time"])
    assert (answer["micro_batches"], answer["samples"]) == (4, [8, 8, 8, 8])
    assert answer["bounds"]["critical_path"] == pytest.approx(5 * 0.75e-3)
    assert sum(answer["memory"]) == pytest.approx(16e6 + 8e6)
    assert answer["sent_bytes"] == pytest.approx(2 * 8e6)
    rows = [(row["operator"], row["micro_batch"]) for row in answer["operators"]]
    assert rows == [(name, number) for number in range(4) for name in ("first", "second")]
    # GPipe: the micro-batch that came last goes back first.
    back = {row["micro_batch"]: row["backward_start"] for row in answer["operators"][1::2]}
    assert sorted(back, key=back.__getitem__) == [3, 2, 1, 0]


def test_a_model_pays_launches_and_weights_each_time():
    requested: Any = {"batch": 32, "dataset": "imagenet", **HERE}
    whole = paradl.place("alexnet", 1, **requested)
    part = paradl.place("alexnet", 1, **requested | {"batch": 8})
    answer = paradl.place("alexnet", 1, micro_batches=4, **requested)
    assert answer["step_time"] == pytest.approx(4 * part["step_time"])
    assert answer["serial_time"] == pytest.approx(whole["step_time"])
    assert answer["step_time"] > 1.05 * answer["serial_time"]


def test_operators_of_all_micro_batches_are_counted(chain):
    text = Path(chain).read_text().replace("batch: 32", "batch: 20480")
    Path(chain).write_text(text)
    with pytest.raises(InputError, match=r"^micro_batches: .*20,000"):
        paradl.place(chain, 2, micro_batches=10240, **HERE)
