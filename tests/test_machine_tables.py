"""Tables with sparse gradients: memory and exchange."""

from pathlib import Path
from typing import Any

import pytest
from sparse_tables import WORDS, make_model

import paradl
from paradl.grids.library import find
from paradl.sweep.questions.place.timed_graph import choose_graph


def predict(sparse: bool, strategy: str = "data", pe: int = 4, batch: int = 32) -> dict[str, Any]:
    return paradl.predict(
        make_model(sparse), strategy, pe, batch, dataset=WORDS, system="dgx1-v100"
    )


def test_a_whole_gradient_takes_memory_by_the_table_and_a_sparse_one_by_the_batch():
    whole, sparse = predict(False), predict(True)
    tables = 2 * 800_000 * 64
    rows = (20 * 32 * 2 + 100) * 64
    parts = {
        name: whole["memory_parts"][name] - value for name, value in sparse["memory_parts"].items()
    }
    assert parts["weights"] == parts["activations"] == pytest.approx(0, abs=1e-3)
    # Biases of the classes are a part of the whole gradient, and their rows are left out.
    assert parts["gradients"] == pytest.approx(4 * (tables + 800_000 - rows))
    assert parts["states"] == parts["gradients"]
    assert sum(sparse["memory_parts"].values()) == pytest.approx(sparse["memory"])
    more = predict(True, batch=64)["memory_parts"]["gradients"]
    assert more - sparse["memory_parts"]["gradients"] == pytest.approx(4 * 20 * 32 * 2 * 64)


def test_rows_of_more_samples_than_words_are_exchanged_as_the_whole_table():
    terms = [predict(sparse, batch=200_000)["terms"] for sparse in (False, True)]
    assert terms[0]["gradient_exchange"] == pytest.approx(terms[1]["gradient_exchange"])
    few = [predict(sparse)["terms"]["gradient_exchange"] for sparse in (False, True)]
    assert few[1] < few[0] / 50
    assert predict(True, pe=1)["terms"]["gradient_exchange"] == 0


@pytest.mark.parametrize("strategy", ["data", "pipeline:segments=4"])
def test_rows_of_more_samples_than_words_have_no_more_states_than_the_whole_table(strategy):
    whole, sparse = (predict(value, strategy, batch=100_000) for value in (False, True))
    assert sparse["memory"] == pytest.approx(whole["memory"])
    assert sparse["memory_parts"] == pytest.approx(whole["memory_parts"])


@pytest.mark.parametrize("sparse", [False, True])
def test_the_largest_batch_fits_and_one_more_does_not(sparse):
    for capacity in ("2.5 GB", "3.5 GB", "16 GB"):
        options: dict[str, Any] = {"dataset": WORDS, "system": "dgx1-v100"}
        options["parameters"] = {"memory_capacity": capacity}
        most = paradl.predict(make_model(sparse), "data", 4, 1, **options)["largest_batch"]
        fits = [
            paradl.predict(make_model(sparse), "data", 4, batch, **options)["feasible"]
            for batch in (max(1, most), most + 1)
        ]
        assert fits == [most > 0, False]


def test_big_lstm_fits_four_devices_of_16_gb_as_it_was_trained():
    """okuchaiev/f-lm: 256 sequences on each of four V100, in fp32."""
    options: dict[str, Any] = {"dataset": "one-billion-words", "system": "dgx1-v100:precision=fp32"}
    answer = paradl.predict("big_lstm", "data", 4, 256, **options)
    assert answer["feasible"]
    assert answer["memory_parts"]["weights"] == pytest.approx(4 * 1_776_884_606, rel=1e-9)
    table_iii = paradl.predict("big_lstm", "data", 4, 256, settings={"oracle": "paper"}, **options)
    assert not table_iii["feasible"]  # it knows whole tables alone


def test_a_placement_holds_touched_rows_alone_too():
    machine = find("system", "dgx1-v100", Path())
    query = choose_graph("big_lstm", machine, "dgx1-v100", 64, "one-billion-words", "sgd")
    held = query.states * sum(operator.weights for operator in query.graph.operators)
    answer = paradl.predict(
        "big_lstm", "data", 1, 64, dataset="one-billion-words", system="dgx1-v100"
    )
    parts = answer["memory_parts"]
    assert held == pytest.approx(sum(parts[name] for name in ("weights", "gradients", "states")))
