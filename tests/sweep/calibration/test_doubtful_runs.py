"""Runs that no fit takes on trust: mistyped units, and times that no other run agrees with."""

from collections.abc import Callable
from pathlib import Path

import pytest

import paradl
from paradl.grids.reading.errors import InputError

FAST = ("--no-cross-validation",)
HEAD = "model,dataset,system,strategy,p,samples_per_replica,total_s"
SYSTEM = "dgx-a100:precision=bf16,software=megatron"
Row = dict[str, str]


def scale(rows: list[Row], factor: float, *chosen: int) -> list[Row]:
    """Rows of totals alone, the chosen ones with another time."""
    return [
        row | {"comp_s": "", "comm_s": "", "total_s": repr(float(row["total_s"]) * times)}
        for number, row in enumerate(rows)
        for times in [factor if number in chosen else 1.0]
    ]


@pytest.mark.parametrize("factor", [1000, 1 / 1000])
def test_a_mistyped_unit_stops_the_fit(factor, measured, seven, cli, tmp_path) -> None:
    output = tmp_path / "mine.yaml"
    path = measured(scale(seven, factor, 2))
    code, out, err = cli("calibrate", path, "-o", output, *FAST)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"{path}:4" in err
    assert "unit" in err
    assert "--keep-anomalies" in err
    assert not output.exists()
    code, _, err = cli("calibrate", path, "-o", output, *FAST, "--keep-anomalies")
    assert code == 0
    assert output.exists()


def test_so_does_that_of_a_whole_file(measured, seven, cli, tmp_path) -> None:
    """All runs agree, and the fit would call itself accurate."""
    output = tmp_path / "mine.yaml"
    path = measured(scale(seven, 1000, *range(7)))
    code, _, err = cli("calibrate", path, "-o", output, *FAST)
    assert code == 2
    assert "unit" in err
    assert f"{path}:2" in err
    assert f"{path}:3" in err
    assert not output.exists()
    # Whoever insists is asked again.
    code, _, err = cli("calibrate", path, "-o", output, *FAST, "--keep-anomalies")
    assert code == 0
    assert "warning: vgg16" in err
    assert "seconds" in err


def test_a_run_that_no_other_agrees_with_stops_the_fit(measured, seven) -> None:
    path = measured(scale(seven, 2.5, 1))
    with pytest.raises(InputError, match=r"measured\.csv:3: .* no other run of vgg16") as refused:
        paradl.calibrate(path, cross_validation=False)
    (odd,) = [row["anomaly"] for row in paradl.compare(path)["rows"] if row["anomaly"]]
    assert odd["cause"] in str(refused.value)
    fitted = paradl.calibrate(path, cross_validation=False, keep_anomalies=True)
    assert fitted.accuracy["fit"]["rows"] == 7


def test_a_machine_that_is_slower_throughout_is_what_a_fit_is_for(measured, seven, cli) -> None:
    """The same runs stand out, since nobody knew; they agree, within what machines explain."""
    path = measured(scale(seven, 2.0, *range(7)))
    assert all(row["anomaly"] for row in paradl.compare(path)["rows"][:3])
    assert paradl.calibrate(path, cross_validation=False).serial["vgg16"].factor > 1.8


@pytest.mark.parametrize(("factor", "is_refused"), [(4.6, False), (5.6, True)])
def test_a_factor_of_five_is_questioned(factor, is_refused, measured, seven) -> None:
    path = measured(scale(seven, factor, *range(7)))  # within 5 % of their predictions
    if is_refused:
        with pytest.raises(InputError, match="unit"):
            paradl.calibrate(path, cross_validation=False)
    else:
        assert paradl.calibrate(path, cross_validation=False).serial


@pytest.fixture(scope="module")
def write_layouts(tmp_path_factory) -> Callable[..., Path]:
    """Runs of a transformer's layouts, off by factors on their predicted times."""
    predicted = [
        paradl.predict(
            *("llama2_7b", "data+tensor:tensor=8,micro=1,zero=1", p, 8),
            dataset="pile:length=4096",
            system=SYSTEM,
            settings={"calibration": "none"},
        )["iteration_time"]
        for p in (64, 128, 256)
    ]

    def write(*factors: float) -> Path:
        path = tmp_path_factory.mktemp("layouts") / "runs.csv"
        rows = [
            f'llama2_7b,pile:length=4096,"{SYSTEM}","data+tensor:tensor=8,micro=1,zero=1",'
            f"{p},8,{seconds * factor}"
            for p, seconds, factor in zip((64, 128, 256), predicted, factors, strict=True)
        ]
        path.write_text("\n".join([HEAD, *rows]) + "\n")
        return path

    return write


def test_layouts_are_doubted_alike(write_layouts) -> None:
    for factors, why in (((1, 1, 2), "no other run"), ((1, 1, 1000), "unit")):
        path = write_layouts(*factors)
        with pytest.raises(InputError, match=rf"runs\.csv:4: .*{why}"):
            paradl.calibrate(path)
        assert paradl.calibrate(path, keep_anomalies=True).layouts
    with pytest.raises(InputError, match=r"unit.*2 more, next .*runs\.csv:3"):
        paradl.calibrate(write_layouts(1000, 1000, 1000))
    slow = paradl.calibrate(write_layouts(1.6, 1.6, 1.6)).layouts
    assert slow
    assert slow.factor > 1.05


def test_many_doubtful_runs_make_a_short_message(measured, seven) -> None:
    rows = scale(seven, 1000, *range(7)) * 40
    with pytest.raises(InputError, match="more") as refused:
        paradl.calibrate(measured(rows), cross_validation=False)
    assert len(str(refused.value)) < 900
