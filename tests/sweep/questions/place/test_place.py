"""What `place` answers: a graph of one's own by hand, models with the oracle's times, bad input."""

from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.errors import RunError
from paradl.sweep.questions.predict import predict

# One branch is worth a message: 8 MB take 160 us over two of a DGX-1's links, and 3.4 us to begin.
DIAMOND = """name: diamond
batch: 32
operators:
  stem: {forward: 1 ms, backward: 2 ms, weights: 4 MB, kept: 8 MB}
  left: {forward: 3 ms, backward: 6 ms, kept: 4 MB}
  right: {forward: 3 ms, backward: 6 ms, kept: 4 MB}
  join: {forward: 1 ms, backward: 2 ms}
tensors:
  - {maker: stem, takers: [left, right], bytes: 8 MB}
  - {maker: left, takers: join, bytes: 8 MB}
  - {maker: right, takers: join, bytes: 8 MB}
"""
MESSAGE = 3.4e-6 + 8e6 / 50e9


@pytest.fixture(scope="module")
def diamond(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("diamond") / "diamond.yaml"
    path.write_text(DIAMOND)
    return str(path)


@pytest.fixture(scope="module")
def answer(diamond: str) -> dict[str, Any]:
    """The diamond on two devices."""
    return paradl.place(diamond, 2, system="dgx1-v100", effort=20)


def test_a_diamond_by_hand(answer):
    forward, backward = 5e-3 + MESSAGE, 10e-3 + MESSAGE
    assert answer["step_time"] == pytest.approx(forward + backward)
    assert (answer["forward_time"], answer["backward_time"]) == pytest.approx((forward, backward))
    assert answer["serial_time"] == pytest.approx(24e-3)
    assert answer["speedup"] == pytest.approx(24e-3 / (forward + backward))
    assert answer["proven"]
    assert answer["gap"] == 0.0
    assert answer["bounds"]["critical_path"] == pytest.approx(15e-3)
    assert answer["bounds"]["work"] == pytest.approx(12e-3)
    assert (answer["pes"], answer["batch"], answer["times"]) == ([0, 3], 32, "measured")
    # Weights with gradient and momentum; of each tensor that is sent a copy, each of 8 MB.
    assert sum(answer["memory"]) == pytest.approx(3 * 4e6 + 16e6 + 2 * 8e6)
    assert answer["sent_bytes"] == pytest.approx(4 * 8e6)
    assert answer["busiest_link"] == pytest.approx(2 * MESSAGE / (forward + backward))


def test_the_backward_pass_is_the_forward_pass_the_other_way(answer):
    rows = {row["operator"]: row for row in answer["operators"]}
    assert rows["stem"]["forward_start"] == 0.0
    assert rows["join"]["forward_end"] == pytest.approx(answer["forward_time"])
    assert rows["join"]["backward_start"] == pytest.approx(answer["forward_time"])
    assert rows["stem"]["backward_end"] == pytest.approx(answer["step_time"])
    for message in answer["messages"]:
        # Forward it is there before a taker begins; backward, before its maker does.
        assert message["come"] - message["sent"] == pytest.approx(MESSAGE)
        if message["pass"] == "forward":
            assert message["sent"] == rows[message["tensor"]]["forward_end"]
        else:
            assert message["come"] <= rows[message["tensor"]]["backward_start"] + 1e-12


def test_a_model_has_the_oracle_s_times():
    answer = paradl.place("alexnet", 2, system="dgx1-v100", batch=32, dataset="imagenet")
    whole = predict(
        "alexnet",
        "data",
        1,
        32,
        system="dgx1-v100",
        dataset="imagenet",
        settings={"optimizer": "none"},
    )
    assert answer["serial_time"] == pytest.approx(whole["iteration_comp_time"])
    # A chain: another device would only wait.
    assert answer["speedup"] == pytest.approx(1.0)
    assert answer["proven"]
    assert answer["times"] == "oracle"


def test_towers_are_worth_a_second_device():
    answer = paradl.place(
        "inception_v3", 2, system="dgx1-v100", batch=32, dataset="imagenet-299", effort=0.3
    )
    assert answer["speedup"] > 1.1
    assert {row["device"] for row in answer["operators"]} == {0, 1}


def test_a_busy_machine_has_the_same_answer():
    """Where threads that compute leave the search a third of its time."""

    def ask() -> dict[str, Any]:
        return paradl.place("inception_v3-pipedream", 2, system="dgx1-v100", effort=0.1)

    idle, done = ask(), Event()
    threads = [Thread(target=lambda: any(done.is_set() for _ in count())) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert ask() == idle
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_memory_that_does_not_do_is_an_answer(diamond, tmp_path):
    small = Path(diamond).read_text().replace("MB", "GB").replace("weights: 4", "weights: 3")
    path = tmp_path / "large.yaml"
    path.write_text(small.replace("bytes: 8 GB", "bytes: 1 B"))
    # The stem has 3 GB of weights thrice, and keeps 8; without momentum twice.
    with pytest.raises(InputError, match=r"'stem' .*17 GB.* 15 GB"):
        paradl.place(str(path), 2, system="dgx1-v100")
    quick = paradl.place(str(path), 2, system="dgx1-v100", optimizer="none", effort=0.1)
    assert quick["feasible"]
    path.write_text(path.read_text().replace("kept: 4 GB", "kept: 14 GB"))
    crowded = tmp_path / "crowded.yaml"
    crowded.write_text(path.read_text().replace("bytes: 1 B", "bytes: 2 GB"))
    with pytest.raises(InputError, match=r"'left' needs 16 GB with its inputs"):
        paradl.place(str(crowded), 2, system="dgx1-v100", optimizer="none")
    answer = paradl.place(str(path), 2, system="dgx1-v100", optimizer="none")
    assert not answer["feasible"]
    assert answer["smallest_devices"] == 3
    assert "step_time" not in answer


def test_too_little_effort_and_a_dead_solver_are_said(tmp_path, monkeypatch):
    # 7 + 8 and 4 + 5 + 6 fit two devices of 15; in turn, or each where it is first, they do not.
    # Both take as long, so that nothing is left to prove.
    operators = "\n".join(
        f"  o{n}: {{forward: {held} ms, backward: {held} ms, kept: {held} GB}}"
        for n, held in enumerate((4, 5, 7, 8, 6))
    )
    path = tmp_path / "tight.yaml"
    path.write_text(f"name: tight\noperators:\n{operators}\n")
    with pytest.raises(RunError, match="effort of 1e-09"):
        paradl.place(str(path), 2, system="dgx1-v100", effort=1e-9)
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONHOME", str(tmp_path))  # the solver's process cannot start
        with pytest.raises(RunError, match="HiGHS died"):
            paradl.place(str(path), 2, system="dgx1-v100")
    answer = paradl.place(str(path), 2, system="dgx1-v100")
    assert answer["feasible"]
    assert sorted(answer["memory"]) == [15e9, 15e9]


REFUSED = [
    ({"what": "inception"}, "'inception_v3'"),
    ({"devices": 9}, "1 to 8"),
    ({"what": "alexnet"}, "batch: "),
    ({"batch": 8}, "batch: "),
    ({"dataset": "imagenet"}, "dataset: "),
    ({"system": "dgx2"}, "'dgx2'"),
    ({"effort": 0.0}, "effort: "),
    ({"effort": float("nan")}, "effort: "),
    ({"what": "none.yaml"}, "none.yaml: "),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_be_placed_is_refused(arguments, message, diamond):
    with pytest.raises(InputError) as error:
        paradl.place(**{"what": diamond, "devices": 2, "system": "dgx1-v100", **arguments})
    assert message in str(error.value)
    assert len(str(error.value)) < 1000


def test_a_graph_that_takes_no_time_is_refused(diamond, tmp_path):
    path = tmp_path / "still.yaml"
    path.write_text("name: still\noperators: {one: {forward: 0, backward: 0}}\n")
    with pytest.raises(InputError, match=r"^graph 'still': "):
        paradl.place(str(path), 2, system="dgx1-v100")
