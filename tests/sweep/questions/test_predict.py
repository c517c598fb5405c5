import json
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.terms import list_terms

KEYS = {
    *("model", "dataset", "system", "strategy", "pe", "replicas", "group", "segments", "batch"),
    *("global_batch", "comp_time", "comm_time", "epoch_time", "iteration_time"),
    *("iteration_comp_time", "iteration_comm_time", "memory", "feasible", "limit", "terms"),
}
COMPUTE = list_terms("compute")


@pytest.fixture(scope="module")
def found():
    return paradl.predict(
        "resnet50",
        "data+filter",
        256,
        64,
        dataset="imagenet-226",
        system="abci",
        settings={"oracle": "paper"},
    )


def test_the_keys_are_stable(found):
    assert set(found) >= KEYS
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_parts_add_up(found):
    compute = sum(found["terms"][name] for name in COMPUTE)
    assert found["comp_time"] == pytest.approx(compute)
    assert found["epoch_time"] == pytest.approx(sum(found["terms"].values()))
    assert found["comp_time"] + found["comm_time"] == pytest.approx(found["epoch_time"])


def test_an_iteration_is_a_part_of_an_epoch(found):
    assert (found["replicas"], found["group"]) == (64, 4)
    assert found["global_batch"] == 64 * 64
    assert found["iterations"] == 1_280_000 / 4096
    assert found["iteration_time"] == pytest.approx(found["epoch_time"] / found["iterations"])
    parts = found["iteration_comp_time"] + found["iteration_comm_time"]
    assert found["iteration_time"] == pytest.approx(parts)


def test_limits_are_named(found):
    assert found["limit"] == ["memory"]
    assert found["feasible"] is False


def test_it_is_the_cell_of_a_cube(mixed):
    prediction = paradl.predict(
        "alexnet",
        "data+filter",
        8,
        64,
        dataset="imagenet-226",
        system="abci",
        parameters={"inter_bandwidth": "1 GB/s"},
        settings={"oracle": "paper"},
    )
    cell = mixed.sel(model="alexnet", dataset="imagenet-226", system="abci", strategy="data+filter")
    cell = cell.sel(pe=8, batch=64, inter_bandwidth=1e9)
    for name in ("comp_time", "comm_time", "memory", *prediction["terms"]):
        value = prediction["terms"].get(name, prediction.get(name))
        assert float(cell[name]) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("oracle", ["machine", "paper"])
def test_the_best_segments_are_stated(oracle):
    """24 samples of a pipeline: 16 segments at most, each with its own overheads."""
    options: dict[str, Any] = {"pe": 4, "batch": 24, "dataset": "imagenet", "system": "abci"}
    options["settings"] = {"oracle": oracle}
    prediction = paradl.predict("alexnet", "pipeline:segments=best", **options)
    values = {
        segments: paradl.predict("alexnet", f"pipeline:segments={segments}", **options)
        for segments in (1, 2, 4, 8, 16)
    }
    fastest = min(values.values(), key=lambda answer: answer["epoch_time"])
    expected = fastest | {"strategy": "pipeline:segments=best"}
    # In numpy or by a program: the last digits may differ.
    one, other = map(pd.json_normalize, (prediction, expected))
    pd.testing.assert_frame_equal(one, other, rtol=1e-12)
    assert values[prediction["segments"]] is fastest
    assert prediction["segments"] == prediction["parameters"]["segments"] > 1


def test_the_best_segments_are_those_that_fit():
    """One segment needs the most memory, and so is not the best where it does not fit."""
    options: dict[str, Any] = {"pe": 2, "batch": 64, "dataset": "imagenet", "system": "abci"}
    slow = {"inter_latency": "1 s", "intra_latency": "1 s"}  # each segment more costs seconds
    options["parameters"] = slow
    one, two = (paradl.predict("vgg16", f"pipeline:segments={n}", **options) for n in (1, 2))
    assert one["epoch_time"] < two["epoch_time"]
    assert one["memory"] > two["memory"]
    assert paradl.predict("vgg16", "pipeline:segments=best", **options)["segments"] == 1
    options["parameters"] = slow | {"memory_capacity": (one["memory"] + two["memory"]) / 2}
    assert paradl.predict("vgg16", "pipeline:segments=best", **options)["segments"] == 2


def test_segments_of_less_than_a_sample_are_no_choice():
    """Also where nothing is allowed: of 12 samples of 4 replicas, one or two segments."""
    options: dict[str, Any] = {"pe": 8, "batch": 12, "dataset": "imagenet", "system": "abci"}
    options["parameters"] = {"memory_capacity": "1 MB"}
    # By Table III more segments are always faster here.
    options["settings"] = {"scaling": "strong", "oracle": "paper"}
    prediction = paradl.predict("vgg16", "data+pipeline:group=2,segments=best", **options)
    assert (prediction["batch"], prediction["segments"]) == (3, 2)
    assert "memory" in prediction["limit"]
    assert "batch_too_small" not in prediction["limit"]


def test_group_and_segments_are_chosen_together():
    options: dict[str, Any] = {"pe": 8, "batch": 16, "dataset": "imagenet", "system": "abci"}
    prediction = paradl.predict("resnet50", "data+pipeline:group=best,segments=best", **options)
    items = [
        paradl.predict("resnet50", f"data+pipeline:group={group},segments={segments}", **options)
        for group in (2, 4, 8)
        for segments in (1, 2, 4, 8, 16)
    ]
    fastest = min(items, key=lambda answer: answer["epoch_time"])
    expected = fastest | {"strategy": "data+pipeline:group=best,segments=best"}
    paths, values = zip(*jax.tree_util.tree_leaves_with_path(dict(prediction)), strict=True)
    others, numbers = zip(*jax.tree_util.tree_leaves_with_path(expected), strict=True)
    assert paths == others
    # Sums over stages are of another order: of all groups at once, or of one.
    assert [*values] == [
        pytest.approx(number, rel=1e-12) if isinstance(number, float) else number
        for number in numbers
    ]


def test_what_does_not_fit_is_an_answer():
    prediction = paradl.predict("alexnet", "data", 8, 256, dataset="cosmoflow-128", system="abci")
    assert set(prediction) >= KEYS
    assert prediction["limit"] == ["incompatible"]
    assert prediction["epoch_time"] is None
    assert prediction["feasible"] is False


ONE: dict[str, Any] = {"strategy": "data", "pe": 8, "batch": 32}
ONE |= {"dataset": "imagenet", "system": "abci"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"pe": [8, 64]}, r"^pe: .*\[8, 64\]"),
        ({"pe": {"pow2": [1, 64]}}, "^pe: .*{'pow2'"),
        ({"pe": list(range(10_000))}, "^pe: "),  # in under 1 kB
        ({"batch": (8,)}, "^batch: "),
        ({"parameters": {"gamma": [0.5, 1]}}, "^gamma: "),
        ({"parameters": {"phi": {"linspace": [1, 2, 3]}}}, "^phi: "),
    ],
)
def test_one_explanation_is_of_one_value_of_each(query, message):
    with pytest.raises(InputError, match=message) as error:
        paradl.explain("alexnet", **ONE | query)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"parameters": [("gamma", 1)]}, "^parameters: "),
        ({"settings": {"axes": {"pe": 1}}}, "^settings: 'axes'"),
        ({"settings": {"parameters": {"gamma": 1}}}, "^settings: 'parameters'"),
    ],
)
@pytest.mark.parametrize("question", [paradl.predict, paradl.explain])
def test_what_is_no_parameter_and_no_setting(question, query, message):
    with pytest.raises(InputError, match=message) as error:
        question("alexnet", **ONE | query)
    assert len(str(error.value)) < 1000


def test_a_price_is_for_one_configuration():
    with pytest.raises(InputError, match=r"^price: .*ds\.paradl\.cost"):
        paradl.predict("alexnet", **ONE | {"pe": [4, 8]}, price=2)


def test_the_path_of_halos_is_stated_of_every_group() -> None:
    """Through host memory on ABCI, though these strategies send none."""
    named = ("halo_latency", "halo_bandwidth")
    paths = []
    for strategy in ("data", "data+pipeline", "data+filter", "data+channel"):
        prediction = paradl.predict("alexnet", strategy, 16, 32, dataset="imagenet", system="abci")
        paths.append([prediction["parameters"][name] for name in named])
    assert paths == [paths[0]] * 4
    assert paths[0][1] == 16e9


@pytest.mark.parametrize(
    ("model", "strategy", "more"),
    [
        ("alexnet", "data+filter:group=4", {"dataset": "imagenet", "system": "abci"}),
        (
            "llama2_7b",
            "data+tensor:tensor=4",
            {"dataset": "pile", "system": "dgx-h100:precision=bf16"},
        ),
    ],
)
def test_what_cannot_exist_has_no_numbers(model: str, strategy: str, more: dict[str, Any]) -> None:
    answer = paradl.predict(model, strategy, 2, 8, **more)
    assert answer["limit"] == ["group_does_not_divide"]
    times = ("epoch_time", "iteration_time", "iteration_comp_time", "iteration_comm_time")
    assert {answer[name] for name in (*times, "memory")} == {None}
    assert {*answer["terms"].values(), *answer["memory_parts"].values()} == {None}
    assert not answer.get("exchanges")


def test_too_many_to_answer_in_memory():
    axes = {
        "inter_bandwidth": np.linspace(1e9, 2e9, 1000),
        "efficiency": np.linspace(0.1, 1, 1000),
        "inter_latency": [1e-6, 2e-6],
    }
    place: Any = {"dataset": "imagenet", "system": "abci", "parameters": axes}
    with pytest.raises(InputError, match="102,000,000 cells"):
        paradl.predict("resnet50", "data", range(1, 52), 32, **place)


def test_elasticities_are_differences():
    """Of many configurations at once, of shares and start-ups, too."""
    values = {"inter_bandwidth": 5e9, "inter_latency": 3e-6, "layer_overhead": 1e-5}
    stored = [f"elasticity_epoch_time_{name}" for name in values]
    settings = {"outputs": ["comp_time", "comm_time", "memory", "limit", *stored]}
    place: Any = {"dataset": "imagenet", "system": "abci"}

    given = place | {"parameters": values, "settings": settings}
    slopes = paradl.predict("resnet50", "data+filter:group=2", [4, 16], 32, **given).squeeze()

    def find_time(pe: int, **changes: float) -> float:
        given = place | {"parameters": values | changes}
        answer = paradl.predict("resnet50", "data+filter:group=2", pe, 32, **given)
        return float(answer["epoch_time"])

    for name, value in values.items():
        for pe in (4, 16):
            more, less = (find_time(pe, **{name: value * (1 + step)}) for step in (1e-4, -1e-4))
            elasticity = float(slopes[f"elasticity_epoch_time_{name}"].sel(pe=pe))
            expected = (more - less) / 2e-4 / find_time(pe)
            assert elasticity == pytest.approx(expected, abs=1e-5)


def test_what_hosts_must_feed_is_named_until_their_rate_is_stated():
    """8 H100 train more than 16,600 images/s; per node, so that more nodes feed more."""
    query: dict[str, Any] = {"dataset": "imagenet", "system": "dgx-h100"}
    one, two = (paradl.predict("resnet50", "data", pe, 256, **query) for pe in (8, 16))
    expected = one["global_batch"] / one["iteration_time"]
    assert one["input"].startswith(f"{expected:,.0f} samples/s per node")
    assert two["input"].startswith(f"{two['global_batch'] / two['iteration_time'] / 2:,.0f} ")
    stated = paradl.predict("resnet50", "data", 8, 256, **query, parameters={"input_rate": 1e4})
    assert stated["input"] is None
    assert stated["iteration_time"] == pytest.approx(one["global_batch"] / 1e4)


@pytest.mark.parametrize(
    ("model", "dataset", "system", "oracle"),
    [
        ("resnet50", "imagenet", "abci", "machine"),
        ("llama3_8b", "pile", "dgx-b200", "machine"),
        ("resnet50", "imagenet", "dgx-h100", "paper"),
    ],
)
def test_few_images_sequences_and_table_iii_have_no_input(model, dataset, system, oracle):
    query: dict[str, Any] = {"dataset": dataset, "system": system, "settings": {"oracle": oracle}}
    assert paradl.predict(model, "data", 8, 32, **query)["input"] is None
