"""The data card: what a data set is, for people, and by its header for Hugging Face."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sweep.samples.columns import ROLES, Column
from sweep.samples.splits import TEST, TRAIN

SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
    (10**9, "100M<n<1B"),
)
WORDS = {
    "label": "Labels, which name a row and are no features",
    "feature": "Features, known ahead of any model, machine and strategy",
    "target": "Targets",
    "gradient": "Gradients: elasticities, d log target / d log input, without a unit",
    "answer": "Answers beside the targets: what the oracle chose, and why a row is forbidden",
    "mark": "Marks",
    "split": "Splits",
}


def write_card(path: Path, facts: Mapping[str, Any], columns: Sequence[Column]) -> None:
    """Write the card of a data set with these facts (`dataset.json`)."""
    header = yaml.safe_dump(_make_header(facts), sort_keys=False, allow_unicode=True)
    parts = (
        f"---\n{header}---",
        _write_origin(facts),
        _write_splits(facts),
        _write_columns(facts, columns),
    )
    path.write_text("\n\n".join(parts) + "\n")


def _make_header(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The header that `datasets` reads: a configuration for each split, its sides as folders."""
    size = next((words for most, words in SIZES if facts["rows"] < most), "n>1B")
    every = {"config_name": "default", "data_files": "data/*/*.parquet", "default": True}
    return {
        "pretty_name": facts["name"],
        "size_categories": [size],
        "tags": ["performance-modelling", "surrogate", "paradl"],
        "configs": [every, *(_configure(name, facts["sides"][name]) for name in facts["splits"])],
    }


def _configure(split: str, sides: Mapping[str, int]) -> dict[str, Any]:
    # A side without rows has no folders, and may not be named.
    files = [
        {"split": side, "path": f"data/*{split}-{side}*/*.parquet"}
        for side in (TRAIN, TEST)
        if sides[side]
    ]
    return {"config_name": split, "data_files": files}


def _write_origin(facts: Mapping[str, Any]) -> str:
    left = f", without {', '.join(facts['leave_out'])} ones" if facts["leave_out"] else ""
    constants = ", ".join(f"`{name}`" for name in facts["constants"]) or "none"
    inputs = ", ".join(f"`{name}`" for name in facts["inputs"]) or "none"
    return f"""# {facts["name"]}

{facts["rows"]:,} rows of {facts["drawn"]:,} that were drawn (seed {facts["seed"]}){left}, by paradl
{facts["versions"]["paradl"]}: answers of its oracle, an analytical model of how long an epoch of
training takes and how much memory it needs, and no measurements. A slice is one point under every
strategy. Shares of the slices: near limits {facts["near_limits"]:g}, near crossovers of strategies
{facts["near_crossovers"]:g}.

Forbidden rows are there, marked by `feasible` and `limit_names`; those that are no
configuration at all (`defined` is false) have null targets. Gradients in: {inputs}; null
where the target is 0 or not defined. Where `near_kink` is true they are one-sided.

Columns of one value in all rows, which teach nothing: {constants}.

The whole spec, with models and machines spelled out, is in `dataset.json` and in the metadata of
each file (`paradl_spec`)."""


def _write_splits(facts: Mapping[str, Any]) -> str:
    lines = ["## Splits", "", "| split | train | test | tested |", "|---|---|---|---|"]
    for name, split in facts["splits"].items():
        sides = facts["sides"][name]
        lines.append(
            f"| {name} | {sides[TRAIN]:,} | {sides[TEST]:,} | {_write_tested(name, split)} |"
        )
    lines += [f"\nNo split `{name}`: {why}." for name, why in facts["missing_splits"].items()]
    lines += ["", "Each is a column and a set of folders; `paradl leakage` checks them."]
    return "\n".join(lines)


def _write_tested(name: str, split: Mapping[str, Any]) -> str:
    if split["tested"] is not None:
        return ", ".join(f"`{label}`" for label in split["tested"])
    if split["trained_to"] is not None:
        return f"{'PE counts' if name == 'scale' else 'batches'} above {split['trained_to']:g}"
    return "problems (all but strategy and batch), by their hash"


def _write_columns(facts: Mapping[str, Any], columns: Sequence[Column]) -> str:
    blocks = ["## Columns"]
    for role in ROLES:
        listed = [column for column in columns if column.role == role]
        if listed:
            rows = [_write_column(facts, column) for column in listed]
            head = ["| column | units | range | meaning |", "|---|---|---|---|"]
            blocks.append("\n".join([f"### {WORDS[role]}", "", *head, *rows]))
    return "\n\n".join(blocks)


def _write_column(facts: Mapping[str, Any], column: Column) -> str:
    cells = (f"`{column.name}`", column.units or "-", _write_range(facts, column), column.meaning)
    return f"| {' | '.join(cells)} |"


def _write_range(facts: Mapping[str, Any], column: Column) -> str:
    ends = facts["ranges"].get(column.name)
    if not ends or column.kind in ("text", "flag"):
        return "-"
    low, high = ends
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
