"""Epochs and time to a target: in answers, cubes and summaries, against sums made by hand."""

import json
import math
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.grid import Grid
from paradl.grids.notes import list_warnings
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import validate_spec
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.names.stored import PERCENTILES

LAW: dict[str, Any] = {
    "name": "mine",
    "model": "resnet50",
    "dataset": "imagenet",
    "target": "top1>=0.759",
    "epochs_min": 35,
    "critical_batch": 47_000,
    "epochs_variance": 0.01,
    "batch_variance": 0.09,
    "error": 0.05,
}
AXES: dict[str, Any] = {
    "model": "resnet50",
    "dataset": "imagenet",
    "system": "dgx-a100",
    "strategy": ["data", "data+spatial:group=2", "data+filter:group=best"],
    "pe": [1, 2, 8, 64, 512],
    "batch": [32, 256],
}
OUTPUTS = ("comp_time", "comm_time", "memory", "limit", "replicas", "epochs", "train_time")
SPEC: dict[str, Any] = {"axes": AXES, "convergence": [LAW], "outputs": list(OUTPUTS)}


def count_epochs(batch: float) -> float:
    """E_min (1 + B / B_c)."""
    return 35 * (1 + batch / 47_000)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("training") / "cube.zarr")
    paradl.run(SPEC, place)
    return place


@pytest.fixture(scope="module")
def cube(url: str) -> Any:
    return paradl.open_dataset(url).load().squeeze(["model", "dataset", "system"], drop=True)


def predict(strategy: Any = "data", pe: int = 64, batch: int = 32, **more: Any) -> dict[str, Any]:
    settings = {"convergence": [LAW], **more.pop("settings", {})}
    return paradl.predict(
        "resnet50",
        strategy,
        pe,
        batch,
        dataset="imagenet",
        system="dgx-a100",
        settings=settings,
        **more,
    )


# Answers.


@pytest.mark.parametrize(
    ("model", "dataset", "settings", "basis"),
    [
        ("gnmt_v2", "wmt16-en-de", {"convergence": "auto"}, "sacrebleu>=24.0, B = 2,048 to 16,384"),
        ("gnmt_v2", "wmt16-en-de", {}, "none: "),
        ("vgg16", "imagenet", {}, "none: "),
        ("big_lstm", "one-billion-words", {}, "none: "),
    ],
)
def test_an_answer_names_its_epochs_or_why_it_has_none(model, dataset, settings, basis):
    answer = paradl.predict(
        model, "data", 8, 32, dataset=dataset, system="dgx1-v100", settings=settings
    )
    assert answer["convergence"].startswith(basis)
    assert (answer["epochs"] is None) == basis.startswith("none")


@pytest.mark.parametrize("strategy", ["data", "data+spatial:group=4", "pipeline"])
def test_time_to_the_target_is_epochs_times_theirs(strategy: str) -> None:
    answer = predict(strategy)
    assert answer["epochs"] == pytest.approx(count_epochs(answer["global_batch"]), rel=1e-12)
    assert answer["train_time"] == pytest.approx(answer["epochs"] * answer["epoch_time"])


def test_accumulated_passes_and_a_strong_batch_count() -> None:
    often = predict(parameters={"accumulate": 4})
    assert often["epochs"] == pytest.approx(count_epochs(64 * 32 * 4))
    strong = predict(batch=2048, settings={"scaling": "strong"})
    assert strong["epochs"] == pytest.approx(count_epochs(2048))
    assert strong["epochs"] == pytest.approx(predict()["epochs"])


def test_the_papers_oracle_knows_epochs_too() -> None:
    answer = predict(settings={"oracle": "paper"})
    assert answer["epochs"] == pytest.approx(count_epochs(2048))
    assert answer["intervals"] is None


def test_intervals_are_the_laws_and_the_oracles_together() -> None:
    answer = predict(pe=512)
    share = 512 * 32 / (512 * 32 + 47_000)
    sigma = math.sqrt(0.01 + share**2 * 0.09 + 0.05**2)
    spreads = {
        name: math.log(interval["p90"] / interval["p50"]) / PERCENTILES[90]
        for name, interval in answer["intervals"].items()
    }
    assert spreads["epochs"] == pytest.approx(sigma)
    both = math.hypot(sigma, spreads["iteration_time"])
    assert spreads["train_time"] == pytest.approx(both)
    assert answer["intervals"]["train_time"]["p50"] == pytest.approx(answer["train_time"])


def test_a_batch_that_nobody_measured_is_an_extrapolation() -> None:
    prediction = predict(pe=1024, batch=128, settings={"convergence": "auto"})["extrapolation"]
    assert prediction[-1] == "epochs: a global batch of 131,072, measured 1,632 to 67,840"
    inside = predict(settings={"convergence": "auto"})["extrapolation"]
    assert not any("global batch" in value for value in inside)


@pytest.mark.parametrize(
    ("law", "parameters"),
    [
        (LAW | {"converges_to": 4096}, {}),
        (LAW, {"max_global_batch": 4096}),
        (LAW | {"converges_to": 10**6}, {"max_global_batch": 4096}),
    ],
)
def test_a_batch_may_be_too_large(law: dict[str, Any], parameters: dict[str, float]) -> None:
    just, beyond = (
        predict(pe=pe, settings={"convergence": [law]}, parameters=parameters) for pe in (128, 129)
    )
    assert just["feasible"]
    assert "no_convergence" in beyond["limit"]
    assert not beyond["feasible"]
    known = law.get("converges_to") == 4096
    assert (beyond["epochs"] is None) == (beyond["train_time"] is None) == known
    assert beyond["epoch_time"] > 0


def test_a_largest_batch_needs_no_law() -> None:
    answer = paradl.predict(
        *("resnet50", "data", 64, 32),
        dataset="imagenet",
        system="abci",
        parameters={"max_global_batch": 2047},
    )
    assert answer["limit"] == ["no_convergence"]
    assert answer["train_time"] is None


# Cubes.


def test_every_cell_is_what_it_is_by_hand(cube: Any) -> None:
    for strategy, pe, batch in product(AXES["strategy"], AXES["pe"], AXES["batch"]):
        cell = cube.sel(strategy=strategy, pe=pe, batch=batch)
        epochs = count_epochs(batch * float(cell.replicas))
        assert float(cell.epochs) == pytest.approx(epochs, rel=1e-6)
        seconds = float(cell.comp_time + cell.comm_time)
        if math.isfinite(seconds):
            assert float(cell.train_time) == pytest.approx(seconds * epochs, rel=1e-6)


def test_what_follows_on_read_is_what_is_stored(url: str) -> None:
    whole = paradl.open_dataset(url)
    bare = whole.drop_vars(["epochs", "train_time"])
    for name in ("epochs", "train_time"):
        derived = getattr(bare.paradl, name).transpose(*whole[name].dims)
        np.testing.assert_allclose(derived, whole[name], rtol=1e-6)
    one = bare.sel(model="resnet50", dataset="imagenet", strategy="data", pe=64, batch=32)
    assert float(one.paradl.epochs.squeeze()) == pytest.approx(count_epochs(2048), rel=1e-6)


def test_the_best_group_is_soonest_at_the_target(cube: Any) -> None:
    """Larger groups leave fewer replicas, smaller batches and fewer epochs."""
    chosen = cube.sel(strategy="data+filter:group=best", pe=64, batch=256)
    times = {}
    for group in (2, 4, 8, 16, 32, 64):
        answer = predict(f"data+filter:group={group}", 64, 256)
        if answer["feasible"]:
            times[group] = answer["train_time"]
    assert 64 / float(chosen.replicas) == min(times, key=lambda group: times[group])
    assert float(chosen.train_time) == pytest.approx(min(times.values()), rel=1e-6)


def find_soonest(cube: Any, strategy: str) -> tuple[float, int, int]:
    """The least time to the target that nothing forbids, with its PEs and batch."""
    values = cube.sel(strategy=strategy)
    return min(
        (float(cell.train_time), pe, batch)
        for pe, batch in product(AXES["pe"], AXES["batch"])
        for cell in [values.sel(pe=pe, batch=batch)]
        if not int(cell.limit) & FORBIDS and np.isfinite(cell.train_time)
    )


@pytest.mark.parametrize("selection", [{}, {"pe": AXES["pe"]}])
def test_best_ranks_by_the_time_to_the_target(url: str, cube: Any, selection: Any) -> None:
    """From the summary that is kept, and from cells."""
    rows = paradl.best(url, selection, objective="train_time").to_dict("records")
    times = [row["train_time"] for row in rows if row["feasible"]]
    assert times == sorted(times)
    for row in rows:
        time, pe, batch = find_soonest(cube, row["strategy"])
        assert (row["pe"], row["batch"]) == (pe, batch)
        assert row["train_time"] == pytest.approx(time, rel=1e-6)
        assert row["train_time"] == pytest.approx(row["epochs"] * row["epoch_time"], rel=1e-6)
        assert row["comp_time"] + row["comm_time"] == pytest.approx(row["epoch_time"])


def test_one_pe_does_not_communicate(tmp_path: Path) -> None:
    """Its time to the target over its epochs is not exactly its time computing."""
    url, batches = str(tmp_path / "cube.zarr"), [8, 16, 32, 64, 128]
    paradl.run({**SPEC, "axes": {**AXES, "strategy": "data", "pe": 1, "batch": batches}}, url)
    for batch in batches:
        rows = paradl.best(url, {"batch": batch}, objective="train_time").to_dict("records")
        assert [row["comm_time"] for row in rows] == [0]


@pytest.mark.parametrize("selection", [{}, {"pe": AXES["pe"]}])
def test_limits_by_the_time_to_the_target(url: str, cube: Any, selection: Any) -> None:
    rows = paradl.limits(url, selection=selection, objective="train_time").to_dict("records")
    assert len(rows) == len(AXES["strategy"]) * len(AXES["batch"])
    alone = {
        batch: float(cube.sel(strategy="data", pe=1, batch=batch).train_time)
        for batch in AXES["batch"]
    }
    for row in rows:
        line = cube.sel(strategy=row["strategy"], batch=row["batch"])
        allowed = ((line.limit & FORBIDS) == 0) & np.isfinite(line.train_time)
        times = line.train_time.where(allowed, np.inf)
        assert row["soonest_pe"] == int(line.pe[int(times.values.argmin())])
        assert row["soonest_time"] == pytest.approx(float(times.min()), rel=1e-6)
        efficient = line.pe.where(times * line.pe <= 2 * alone[row["batch"]] * (1 + 1e-6))
        assert row["efficient_pe"] == int(efficient.max())


def test_epochs_do_not_move_the_fastest_epoch(url: str, cube: Any) -> None:
    for row in paradl.limits(url, selection={"strategy": "data"}).to_dict("records"):
        line = cube.sel(strategy="data", batch=row["batch"])
        times = (line.comp_time + line.comm_time).where((line.limit & FORBIDS) == 0, np.inf)
        assert row["fastest_pe"] == int(line.pe[int(times.values.argmin())])
        assert row["fastest_time"] == pytest.approx(float(times.min()), rel=1e-6)


def test_chances_count_epochs(url: str) -> None:
    """What is faster an epoch need not be sooner: one has half the replicas of the other."""
    selection = {"strategy": ["data", "data+spatial:group=2"], "pe": [512], "batch": [256]}
    by_epoch, by_target = (
        paradl.best(url, selection, objective=objective).to_dict("records")[0]
        for objective in ("epoch_time", "train_time")
    )
    assert 0.5 < by_epoch["faster_than_next"] <= 1
    assert 0 < by_target["faster_than_next"] < 1
    assert by_epoch["faster_than_next"] != by_target["faster_than_next"]


def find_chances(rivals: list[str], error: float, batch_variance: float = 0.0) -> dict[str, float]:
    """Chances of the first by epochs' law, whose error is a spread of the logarithm of epochs."""
    law = LAW | {"error": error, "batch_variance": batch_variance}
    space: Any = predict(rivals, settings={"convergence": [law]})
    chances = {}
    for objective in ("epoch_time", "train_time"):
        first, second = paradl.best(space, objective=objective).to_dict("records")
        chances[objective] = first["faster_than_next"]
        chances[f"ratio of {objective}"] = second[objective] / first[objective]
    return chances


def test_chances_to_a_target_are_as_unsure_as_the_epochs_of_both() -> None:
    """Epochs of two batches err independently of each other, and so does their ratio."""
    rivals = ["data", "data+spatial:group=8"]  # the latter with an eighth of the replicas
    sure, unsure = find_chances(rivals, 0.0), find_chances(rivals, 2.0)
    assert sure["train_time"] > 0.99
    # By hand: all else is small beside it.
    away = math.log(unsure["ratio of train_time"]) / (2.0 * math.sqrt(2))
    assert unsure["train_time"] == pytest.approx(NormalDist().cdf(away), abs=0.01)
    # A variance of the critical batch counts, too; an epoch has none of this.
    assert find_chances(rivals, 0.0, 100.0)["train_time"] < sure["train_time"] - 0.003
    assert unsure["epoch_time"] == sure["epoch_time"]


def test_chances_to_a_target_of_one_batch_know_that_its_epochs_are_the_same() -> None:
    rivals = ["data+spatial:group=2", "data+filter:group=2"]
    sure, unsure = find_chances(rivals, 0.0), find_chances(rivals, 0.5)
    assert unsure["train_time"] == pytest.approx(sure["train_time"], rel=1e-12)
    assert sure["train_time"] > 0.9


@pytest.mark.parametrize(
    ("oracle", "outputs"),
    [
        ("machine", ["epochs", "train_time", "train_time_p90"]),
        (
            "paper",
            ["elasticity_train_time_batch"],
        ),  # a program, which the machine's oracle makes large
    ],
)
def test_a_model_without_a_law_has_no_time_to_the_target(
    oracle: str, outputs: list[str], tmp_path: Path
) -> None:
    axes = {**AXES, "model": ["alexnet", "resnet50"], "strategy": "data", "pe": 2, "batch": 32}
    spec = {"oracle": oracle, "axes": axes, "convergence": [LAW]}
    spec["outputs"] = [*OUTPUTS[:4], *outputs]
    ds = paradl.run(spec, str(tmp_path / "cube.zarr"))
    for name in outputs:
        assert np.isfinite(ds[name].values).ravel().tolist() == [False, True], name


def test_a_store_holds_its_law(url: str) -> None:
    written = json.loads(paradl.open_dataset(url).attrs["paradl_spec"])
    (law,) = written["convergence"]
    assert {name: law[name] for name in LAW} == LAW
    again = Grid.from_definition(written)
    assert again.convergences[("resnet50", "imagenet")].law.critical_batch == 47_000
    with pytest.raises(InputError, match="convergence: "):
        Grid.from_definition(written | {"convergence": ["./mine.csv"]})


# What is asked for and is not known.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outputs": ["train_time"]}, "'train_time'"),
        ({"outputs": ["train_time_p90"]}, "'train_time_p90'"),
        ({"target": "top1>=0.759"}, "target"),
        ({"convergence": ["auto", "none"]}, "convergence: "),
    ],
)
def test_a_spec_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        validate_spec({"axes": AXES, **change}, "spec")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"convergence": "auto", "target": "top1>=0.76"}, "'top1>=0.76'"),
        ({"convergence": [LAW | {"model": "vgg16"}]}, "resnet50 on im"),
        ({"convergence": "nobody"}, "'nobody'"),
        ({"convergence": "./none.csv"}, "none.csv"),
    ],
)
def test_epochs_that_are_not_known(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Grid.from_spec(validate_spec({"axes": AXES, **change}, "spec"))


def test_a_users_own_file(tmp_path: Path) -> None:
    rows = ["model,dataset,target,global_batch,epochs", "resnet50,imagenet,mine,256,30"]
    rows += ["resnet50,imagenet,mine,1024,33", "resnet50,imagenet,mine,4096,never"]
    (tmp_path / "mine.csv").write_text("\n".join(rows) + "\n")
    spec = validate_spec({"axes": AXES, "convergence": "mine.csv"}, "spec")
    grid = Grid.from_spec(spec, tmp_path)
    assert grid.convergences["resnet50", "imagenet"].converges_to == 1024
    assert list_warnings(grid) == []
    noisy = [*rows[:2], "resnet50,imagenet,mine,1024,29", rows[3]]
    (tmp_path / "mine.csv").write_text("\n".join(noisy) + "\n")
    (warning,) = list_warnings(Grid.from_spec(spec, tmp_path))
    assert "30 at 256 to 29 at 1,024" in warning


def test_a_cube_without_epochs_says_so(small_url: str) -> None:
    ds = paradl.open_dataset(small_url)
    for source in (small_url, ds):
        with pytest.raises(InputError, match="convergence: auto"):
            paradl.best(source, objective="train_time")
    misspelt: Any = "train-tim"
    with pytest.raises(InputError, match=r"^objective: .*'train-tim'"):
        paradl.limits(ds, objective=misspelt)


def test_commands(url: str, cli: Any) -> None:
    code, out, _ = cli("limits", url, "--objective", "train-time", "--format", "json")
    assert code == 0
    (row, *_) = json.loads(out)
    assert row["soonest_pe"] == 512
    _, out, _ = cli("schema", "limits")
    stated = json.loads(out)["items"]["properties"]
    assert {name for name in stated if "soonest" in name} == {n for n in row if "soonest" in n}
    options = (
        *("--model", "resnet50", "--dataset", "imagenet", "--system", "abci"),
        *("--strategy", "data", "--pe", 64),
    )
    more = ("--batch", 32, "--convergence", "auto", "--target", "top1>=0.759", "--format", "json")
    code, out, _ = cli("predict", *options, *more)
    assert code == 0
    seconds = json.loads(out)["train_time"]
    assert seconds > 0
    _, out, _ = cli("predict", *options, *more[:-2])
    (line,) = (line for line in out.splitlines() if line.split()[:1] == ["train_time"])
    number, unit = line.split()[1:]
    assert unit == "min"
    assert 60 * float(number) == pytest.approx(seconds, rel=1e-3)
    code, out, err = cli("predict", *options, *more, "--max-global-batch", 2047)
    assert code == 4
    assert json.loads(out)["limit"] == ["no_convergence"]
    assert "no_convergence" in err
