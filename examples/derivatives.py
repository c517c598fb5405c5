"""What are derivatives worth? Errors of a surrogate by its training rows, with slopes and without.

    pip install '.[surrogate,plot]'
    python examples/derivatives.py derivatives            # the picture of docs/surrogates.md
    python examples/derivatives.py derivatives --quick    # two small data sets, one seed

Writes FOLDER/derivatives.csv and FOLDER/derivatives.png. One data set is drawn; of its slices, more
and more are trained on. A surrogate learns from those rows that lie on the training side of all
splits, and is asked about all rows that one split alone holds out.
"""

import csv
import json
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import pyarrow.dataset as pads
from matplotlib.figure import Figure
from pyarrow import parquet

import paradl
from paradl.sweep.plots.figures import save_figure, scale_amounts
from paradl.sweep.plots.looks import LOOKS

SPEC: dict[str, Any] = {
    "name": "derivatives",
    "axes": {
        "model": ["alexnet", "vgg16", "resnet50", "resnet152", "densenet121", "mobilenet_v2"],
        "dataset": "imagenet-226",
        "system": ["dgx1-p100", "dgx1-v100", "dgx-a100", "dgx-h100"],
        "strategy": ["data", "data+spatial:group=4", "data+pipeline:group=4"],
        "pe": {"pow2": [4, 1024]},
        "batch": {"loguniform": [8, 256]},
        "intra_bandwidth": {"loguniform": [1e10, 1e12]},
        "inter_bandwidth": {"loguniform": [1e9, 1e11]},
        "inter_latency": {"loguniform": [1e-6, 5e-5]},
    },
}
# Six splits leave about a fifth of the rows to train on.
DRAWN = (1024, 4096, 16384, 65536)
SPLITS = ("random", "model", "system", "strategy", "scale", "size")
COLUMNS = (
    "drawn",
    "gradients",
    "seed",
    "train_rows",
    "seconds",
    "split",
    "test_rows",
    "median_error",
    "p95_error",
    "r2_log_time",
    "mean_regret",
)
# Colours and marks of these pictures' strategies, which are told apart in grey print, too.
LINES = {
    False: ("values alone", LOOKS["data"]),
    True: ("values and slopes", LOOKS["data+pipeline"]),
}
TITLES = {
    "random": "other problems",
    "model": "another network",
    "system": "another machine",
    "strategy": "another strategy",
    "scale": "more PEs",
    "size": "larger batches",
}
Row = dict[str, Any]


def main() -> None:
    """Measure, write the figures down as they come, draw the picture."""
    parser = make_parser()
    options = parser.parse_args()
    try:
        rows = write_errors(options)
        save_figure(draw_errors(rows), Path(options.folder) / "derivatives.png")
    except (paradl.InputError, paradl.RunError) as error:
        parser.error(str(error))


def write_errors(options: Namespace) -> list[Row]:
    """The rows of the study, which are in its table as soon as they are there."""
    folder = Path(options.folder)
    drawn = DRAWN[:2] if options.quick else DRAWN
    seeds = range(1 if options.quick else options.seeds)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with (folder / "derivatives.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in measure_all(SPEC, folder, drawn, seeds, options.epochs):
            writer.writerow(row)
            file.flush()
            rows.append(row)
    return rows


def measure_all(
    spec: dict[str, Any], folder: Path, drawn: Sequence[int], seeds: Iterable[int], epochs: int
) -> Iterator[Row]:
    """A row for each seed, number of rows drawn, way of training and split."""
    whole = folder / f"rows-{max(drawn)}"
    paradl.sample(spec, whole, max(drawn), force=True)
    for rows in drawn:
        if rows < max(drawn):
            keep_slices(whole, folder / f"rows-{rows}", rows / max(drawn))
    for seed in seeds:
        for rows in drawn:
            for gradients in (False, True):
                data = folder / f"rows-{rows}"
                yield from measure_errors(data, whole, gradients, seed, epochs, rows)


def keep_slices(whole: Path, part: Path, share: float) -> None:
    """Write a data set of a share of the slices of another, and of all that lies in them."""
    table = pads.dataset(sorted(map(str, whole.glob("data/*/*.parquet")))).to_table()
    slices = np.unique(table["slice"].to_numpy())
    chosen = np.random.default_rng(0).permutation(slices)[: round(share * len(slices))]
    table = table.filter(np.isin(table["slice"].to_numpy(), chosen))
    (part / "data" / "part").mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, part / "data" / "part" / "rows.parquet")
    facts = json.loads((whole / "dataset.json").read_text())
    (part / "dataset.json").write_text(json.dumps(facts | {"rows": len(table)}))


def measure_errors(
    data: Path, tested: Path, gradients: bool, seed: int, epochs: int, drawn: int
) -> Iterator[Row]:
    """A row for each split: a surrogate trained on one data set, tested on a larger one."""
    file = data.with_suffix(".eqx")
    begin = time.process_time()
    trained = paradl.train_surrogate(
        data,
        file,
        splits=[each for each in SPLITS if each in paradl.open_samples(data).splits],
        gradients=gradients,
        epochs=epochs,
        width=64,
        seed=seed,
        force=True,
    )
    facts = {
        "drawn": drawn,
        "gradients": gradients,
        "seed": seed,
        "train_rows": trained.rows,
        "seconds": round(time.process_time() - begin, 1),
    }
    print(facts, file=sys.stderr)
    for scores in paradl.evaluate_surrogate(file, tested, baselines=False):
        if "note" not in scores:
            known = {name: scores[name] for name in COLUMNS[5:] if name in scores}
            yield facts | known | {"test_rows": scores["rows"]}


def draw_errors(rows: Sequence[Row]) -> Any:
    """A panel a split: the median relative error by training rows; dots are seeds."""
    figure = Figure(figsize=(6.6, 4.6), dpi=120)
    errors = [100 * row["median_error"] for row in rows]
    splits = [each for each in SPLITS if any(row["split"] == each for row in rows)]
    panels = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    for axes in panels[len(splits) :]:
        axes.remove()
    for axes, split in zip(panels, splits, strict=False):
        for gradients, (name, look) in LINES.items():
            draw_line(
                axes,
                [row for row in rows if (row["split"], row["gradients"]) == (split, gradients)],
                {**look.line, "label": name},
            )
        axes.set_xscale("log")
        counts = sorted({row["train_rows"] for row in rows})
        axes.set_xticks(counts, [f"{count:,}" for count in counts])
        axes.set_xticks([], minor=True)
        scale_amounts(axes, min(errors), max(errors))
        axes.set_title(f"{split}: {TITLES[split]}", fontsize=8.5, loc="left")
        axes.tick_params(labelsize=8)
        axes.grid(which="major", color="0.9", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("training rows", fontsize=9)
    figure.supylabel("median error of an epoch's time [%]", fontsize=9)
    # Above the panels: over no data.
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="upper right", ncols=2, fontsize=8.5, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    return figure


def draw_line(axes: Any, rows: Sequence[Row], look: dict[str, Any]) -> None:
    """The geometric mean over seeds, and each of them as a dot."""
    counts = sorted({row["train_rows"] for row in rows})
    errors = {
        count: [100 * row["median_error"] for row in rows if row["train_rows"] == count]
        for count in counts
    }
    axes.plot(counts, [geometric_mean(each) for each in errors.values()], markersize=4, **look)
    dots = [(count, error) for count, each in errors.items() for error in each]
    axes.scatter(*zip(*dots, strict=True), s=5, color=look["color"], alpha=0.5)


def make_parser() -> ArgumentParser:
    """The command's arguments."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where data sets, figures and the picture go")
    parser.add_argument("--quick", action="store_true", help="two data sets, one seed")
    parser.add_argument("--seeds", type=int, default=3, help="surrogates of each kind")
    parser.add_argument("--epochs", type=int, default=40, help="of training, at most")
    return parser


if __name__ == "__main__":
    main()
