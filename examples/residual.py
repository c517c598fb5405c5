r"""A learnt correction of the uncalibrated oracle, against its calibration, on runs left out alike.

    python examples/residual.py                          # the runs of ABCI in the catalogue
    paradl calibrate runs.csv --system mine -o mine.yaml && \
        python examples/residual.py runs.csv mine.yaml   # yours

What is learnt is the logarithm of measured over predicted seconds, by ridge regression on what a
run is and on what the oracle says of it: no surrogate of an oracle, whose features hold no answer.
Runs are left out as `paradl calibrate` does it for the table of docs/accuracy.md; how strongly the
regression is held back is chosen by leaving out one by one the runs that are left in, never by
those that are tested.
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import paradl
from paradl.grids.entries.calibration import CalibrationFile
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.library import find
from paradl.sweep.calibration.cross_validation import list_folds
from paradl.sweep.calibration.observations import observe
from paradl.sweep.measured.runs import PARTS, read_runs

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Row = dict[str, Any]

RUNS = CATALOGUE / "measured" / "abci.csv"
# Of squared weights against squared errors; features have variance 1.
STRENGTHS = np.logspace(-2, 3, 21)
# Runs to learn from: without one of them there has to be a rest.
LEAST = 3
METHODS = ("uncalibrated", "calibrated", "corrected", "learnt alone")


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="?", type=Path, default=RUNS, help="measured runs, CSV")
    parser.add_argument("calibration", nargs="?", default="abci", help="what they gave")
    options = parser.parse_args()
    try:
        calibration = find("calibration", options.calibration, Path())
        compared = compare_methods(options.runs, calibration)
    except paradl.InputError as error:
        parser.error(str(error))
    print(format_table(compared))


def compare_methods(path: Path, calibration: CalibrationFile) -> list[Row]:
    """The mean accuracy of each part, of each way to leave runs out and each method.

    `corrected` multiplies the oracle's seconds by what was learnt; `learnt alone` knows nothing of
    an oracle. `calibrated` is what the calibration of these runs says of itself under these folds.
    """
    rows = paradl.compare(path, system=calibration.system, calibration="none")["rows"]
    observations = observe(read_runs(path), calibration.system)
    measured = np.log(observations.seconds)
    predicted = read_predictions(rows)
    known, oracle = describe_runs(rows), describe_answers(predicted)
    compared: list[Row] = []
    for scheme, folds in list_folds(observations).items():
        methods = {
            "uncalibrated": [(held, predicted[:, held]) for held in folds],
            "corrected": list(predict_held(np.hstack([known, oracle]), measured, predicted, folds)),
            "learnt alone": list(predict_held(known, measured, np.zeros_like(measured), folds)),
        }
        accuracies = {name: rate_parts(measured, each) for name, each in methods.items()}
        stated = calibration.accuracy.get(scheme, {})
        accuracies["calibrated"] = {part: float(stated[part]) for part in PARTS if part in stated}
        tested = sum(int(held.sum()) for held in folds)
        compared += [
            {"left out": scheme, "rows": tested, "method": name, **accuracies[name]}
            for name in METHODS
        ]
    return compared


def read_predictions(rows: Sequence[Row]) -> Floats:
    """Logarithms of the oracle's seconds [part, run]; NaN of what one PE sends."""
    seconds = np.array([[row[f"predicted_{part}"] or np.nan for row in rows] for part in PARTS])
    return np.asarray(np.log(seconds), float)


def describe_runs(rows: Sequence[Row]) -> Floats:
    """What a run is [run, feature]: PEs, samples a replica, replicas or none, the way in which
    layers are divided, the network.
    """
    strategies = [parse_strategy(row["strategy"]) for row in rows]
    counts = [[row["p"], row["samples_per_replica"]] for row in rows]
    replicated = [[each.replicated] for each in strategies]
    ways = mark_names(["+".join(each.parts) for each in strategies])
    models = mark_names([row["model"] for row in rows])
    return np.hstack([np.log2(np.array(counts, float)), replicated, ways, models])


def describe_answers(predicted: Floats) -> Floats:
    """What the oracle says of a run [run, 2]: logarithm of its compute, share of communication."""
    seconds = np.nan_to_num(np.exp(predicted))
    total, comp, comm = (seconds[PARTS.index(part)] for part in ("total", "comp", "comm"))
    return np.stack([np.log(comp), comm / total], axis=1)


def mark_names(names: Sequence[str]) -> Floats:
    """1 for the name that a run has [run, name]."""
    return np.array([[each == name for name in dict.fromkeys(names)] for each in names], float)


def predict_held(
    features: Floats, measured: Floats, predicted: Floats, folds: Sequence[Mask]
) -> Iterator[tuple[Mask, Floats]]:
    """The runs that each fold leaves out, and logarithms of their seconds [part, run], by what the
    others teach: a ridge regression of measured over predicted, a part at a time.
    """
    for held in folds:
        learnt = []
        for known, base in zip(measured, predicted, strict=True):
            seen = ~held & np.isfinite(known - base)
            added = (
                fit_ridge(features[seen], (known - base)[seen], features[held])
                if seen.sum() >= LEAST
                else np.nan
            )
            learnt.append(base[held] + added)
        yield held, np.array(learnt)


def fit_ridge(features: Floats, targets: Floats, asked: Floats) -> Floats:
    """What a ridge regression says of `asked` [run, feature], of the strength whose error is least
    as each of its own runs is left out in turn.
    """
    mean, spread = features.mean(axis=0), features.std(axis=0)
    kept = spread > 1e-9
    inside, outside = ((each - mean)[:, kept] / spread[kept] for each in (features, asked))
    left, sizes, right = np.linalg.svd(inside, full_matrices=False)
    middle = targets.mean()
    off = targets - middle
    errors = []
    for strength in STRENGTHS:
        hat = (left * (sizes**2 / (sizes**2 + strength))) @ left.T
        # A run's error without it is that with it, over what its own weight leaves.
        own = np.diag(hat) + 1 / len(targets)
        errors.append(np.mean(((off - hat @ off) / (1 - own)) ** 2))
    strength = STRENGTHS[int(np.argmin(errors))]
    weights = right.T @ (sizes / (sizes**2 + strength) * (left.T @ off))
    return np.asarray(middle + outside @ weights)


def rate_parts(measured: Floats, told: Sequence[tuple[Mask, Floats]]) -> dict[str, float]:
    """1 - |predicted - measured| / measured, at least 0: the mean of each measured part."""
    off = np.concatenate([each - measured[:, held] for held, each in told], axis=1)
    accuracies = np.maximum(0.0, 1 - np.abs(np.expm1(off)))
    known = np.isfinite(accuracies)
    return {
        part: float(row[some].mean())
        for part, row, some in zip(PARTS, accuracies, known, strict=True)
        if some.any()
    }


def format_table(compared: Sequence[Row]) -> str:
    """A line for each way to leave runs out: total/compute/communication [%] of each method."""
    lines = [f"{'left out':<17}{'n':>3}" + "".join(f"{name:>15}" for name in METHODS)]
    for scheme in dict.fromkeys(row["left out"] for row in compared):
        of = [row for row in compared if row["left out"] == scheme]
        parts = ["/".join(_format_share(row.get(part)) for part in PARTS) for row in of]
        lines.append(f"{scheme:<17}{of[0]['rows']:>3}" + "".join(f"{each:>15}" for each in parts))
    return "\n".join(lines)


def _format_share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


if __name__ == "__main__":
    main()
