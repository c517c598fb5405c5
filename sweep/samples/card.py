"""The data card of a data set: for people and, by its header, for Hugging Face's `datasets`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from paradl.sweep.samples.columns import SampleColumn
from paradl.sweep.samples.splits import AXES, TEST, TRAIN

SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")
HEADINGS = {
    "label": "Labels: they name a row; do not train on them",
    "feature": "Features, known before any run for every model, machine and strategy",
    "target": "Targets",
    "gradient": "Gradients: elasticities, d log target / d log input, dimensionless",
    "answer": "Further answers: what the oracle chose, and why a row is infeasible",
    "mark": "Marks",
    "split": "Splits",
}


def write_card(path: Path, facts: Mapping[str, Any], columns: Sequence[SampleColumn]) -> None:
    """Write the data card (README.md); `facts` are those of `dataset.json`."""
    header = yaml.safe_dump(_make_header(facts), sort_keys=False, allow_unicode=True)
    parts = [f"---\n{header}---", _write_origin(facts), _write_splits(facts), "## Columns"]
    for role, heading in HEADINGS.items():
        rows = [
            (f"`{column.name}`", column.units or "-", _write_range(facts, column), column.meaning)
            for column in columns
            if column.role == role
        ]
        if rows:
            parts.append(f"### {heading}")
            parts.append(_write_table(("column", "units", "range", "meaning"), rows))
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _make_header(facts: Mapping[str, Any]) -> dict[str, Any]:
    """YAML header for `datasets`: one configuration per split, whose two sides are folders."""
    whole = {"config_name": "default", "data_files": "data/*/*.parquet", "default": True}
    splits = [
        {
            "config_name": split,
            # `datasets` fails on a pattern without files, and a side without rows has none.
            "data_files": [
                {"split": side, "path": f"data/*{split}-{side}*/*.parquet"}
                for side in (TRAIN, TEST)
                if facts["sides"][split][side]
            ],
        }
        for split in facts["splits"]
    ]
    thousands = max(0, len(str(facts["rows"])) - 3)
    return {
        "pretty_name": facts["name"],
        "size_categories": [[*SIZES, "n>1B"][min(thousands, len(SIZES))]],
        "tags": ["performance-modelling", "surrogate", "paradl"],
        "configs": [whole, *splits],
    }


def _write_origin(facts: Mapping[str, Any]) -> str:
    left_out = f", without {', '.join(facts['leave_out'])} ones" if facts["leave_out"] else ""
    constants = ", ".join(f"`{name}`" for name in facts["constants"]) or "none"
    inputs = ", ".join(f"`{name}`" for name in facts["inputs"]) or "none"
    return f"""# {facts["name"]}

{facts["rows"]:,} of {facts["drawn"]:,} rows drawn (seed {facts["seed"]}){left_out}, by paradl
{facts["versions"]["paradl"]}. These are predictions of an analytical model of training time and
memory, not measurements. A slice is one point under every strategy. Shares of the slices: near
limits {facts["near_limits"]:g}, near crossovers of strategies {facts["near_crossovers"]:g}.

Infeasible rows are kept: see `feasible` and `limit_names`. Rows whose configuration cannot exist
(`defined` is false) have null targets. Gradients in: {inputs}; null where the target is 0 or
undefined, one-sided where `near_kink` is true.

Constant columns, from which nothing can be learned: {constants}.

The complete spec, including models and machines, is in `dataset.json` and in the metadata of each
file (`paradl_spec`)."""


def _write_splits(facts: Mapping[str, Any]) -> str:
    rows = []
    for name, split in facts["splits"].items():
        counts = (f"{facts['sides'][name][side]:,}" for side in (TRAIN, TEST))
        rows.append((name, *counts, _write_tested(name, split)))
    missing = [f"No split `{name}`: {why}." for name, why in facts["missing_splits"].items()]
    table = _write_table(("split", "train", "test", "tested"), rows)
    last = "Each split is a column and a set of folders; check them with `paradl surrogate check`."
    return "\n\n".join(["## Splits", table, *missing, last])


def _write_tested(name: str, split: Mapping[str, Any]) -> str:
    if split["tested"] is not None:
        return ", ".join(f"`{label}`" for label in split["tested"])
    if split["trained_to"] is not None:
        return f"{AXES[name]} above {split['trained_to']:g}"
    return "problems (everything but strategy and batch), chosen by a hash"


def _write_range(facts: Mapping[str, Any], column: SampleColumn) -> str:
    ends = facts["ranges"].get(column.name)
    if not ends or column.kind in ("string", "bool"):
        return "-"
    low, high = ends
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def _write_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))
