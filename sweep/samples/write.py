"""Write rows as Parquet, in folders by the sides of every split, and their data card.

The card is for people and, by its header, for Hugging Face's `datasets`. Rows arrive in chunks and
leave in row groups, so memory does not grow with their number.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from numpy.typing import NDArray

from paradl.sweep.exports.tables import RowGroups, describe_column
from paradl.sweep.samples.columns import Columns, SampleColumn
from paradl.sweep.samples.splits import AXES, TEST, TRAIN, name_split

# Least rows per row group: with 100 columns 25 MB, which every folder buffers.
GROUP_ROWS = 2**15


@dataclass
class WrittenRows:
    """Summary of written rows.

    sides: number of rows by split and side. ends: least and largest value by column.
    """

    sides: dict[str, dict[str, int]]
    rows: int = 0
    ends: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def add(self, rows: Columns) -> None:
        """Add rows to the summary."""
        self.rows += len(rows["slice"])
        for split, counts in self.sides.items():
            for side in counts:
                counts[side] += int((rows[name_split(split)] == side).sum())
        for name, column in rows.items():
            values = column[~np.isnan(column)] if column.dtype.kind == "f" else column
            if values.size:
                ends = (*self.ends.get(name, ()), *_find_ends(values))
                self.ends[name] = (min(ends), max(ends))

    def list_constants(self, columns: Iterable[SampleColumn]) -> list[str]:
        """List the columns with one value in all rows, or with none."""
        return [column.name for column in columns if len(set(self.ends.get(column.name, ()))) < 2]


def write_rows(
    path: Path,
    chunks: Iterable[Columns],
    columns: Sequence[SampleColumn],
    attributes: Mapping[str, str],
    splits: Sequence[str],
) -> WrittenRows:
    """Write rows into folders below `path`, named after the sides of splits."""
    fields = []
    for column in columns:
        kind, words = pa.type_for_alias(column.kind), column.meaning
        fields.append(describe_column(column.name, kind, words, column.units, role=column.role))
    schema = pa.schema(fields, metadata=dict(attributes))
    summary = WrittenRows({split: {TRAIN: 0, TEST: 0} for split in splits})
    texts = [column.name for column in schema if pa.types.is_string(column.type)]
    path.mkdir()
    # Not pyarrow's `write_dataset`, whose threads waited forever for worker processes.
    files: dict[str, RowGroups] = {}
    with ExitStack() as stack:
        for rows in chunks:
            summary.add(rows)
            for folder, batch in _divide(rows, schema, splits).items():
                if folder not in files:
                    (path / folder).mkdir()
                    # Of numbers, dictionaries of 64 small files took 0.5 of 2.2 s to write, and
                    # made them 5 % larger.
                    file = path / folder / "part-0.parquet"
                    files[folder] = RowGroups(file, schema, GROUP_ROWS, use_dictionary=texts)
                    stack.callback(files[folder].close)
                files[folder].add(pa.Table.from_batches([batch]))
    return summary


def _divide(rows: Columns, schema: pa.Schema, splits: Sequence[str]) -> dict[str, pa.RecordBatch]:
    """Divide rows by folder, such as `random-train,model-test`; NaN becomes null."""
    # One number for the sides of all splits, which sorts 20 times as fast as their names.
    tested = np.stack([rows[name_split(split)] == TEST for split in splits])
    numbers, places = np.unique(2 ** np.arange(len(splits)) @ tested, return_inverse=True)
    # Sorted once: taking the rows of each of 64 folders from a table takes thrice as long.
    order = np.argsort(places, kind="stable")
    arrays = [
        pa.array(rows[column.name][order], column.type, from_pandas=True) for column in schema
    ]
    batch, first = pa.RecordBatch.from_arrays(arrays, schema=schema), 0
    batches = {}
    for number, count in zip(numbers.tolist(), np.bincount(places).tolist(), strict=True):
        sides = (TEST if number >> bit & 1 else TRAIN for bit in range(len(splits)))
        # No `=` in names: readers would add the sides as columns, which the files have already.
        folder = ",".join(f"{split}-{side}" for split, side in zip(splits, sides, strict=True))
        # A copy: what is left of a chunk would keep it whole until its row groups are full. Through
        # a message: 64 folders of 12,000 rows take 0.13 s of CPU, by a copy of each column 0.25.
        message = batch.slice(first, count).serialize()
        batches[folder] = pa.ipc.read_record_batch(message, schema)
        first += count
    return batches


def _find_ends(values: NDArray[Any]) -> tuple[Any, Any]:
    """Return the least and the largest of numbers or texts, as Python values."""
    if values.dtype.kind == "U":  # numpy has no minimum of texts, and sorting them is slow
        texts = set(values.tolist())
        return min(texts), max(texts)
    return values.min().item(), values.max().item()


# Of a data set, by the number of digits beyond three.
SIZES = (
    *("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"),
    "n>1B",
)
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


def _make_header(facts: Mapping[str, Any]) -> dict[str, object]:
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
    return {
        "pretty_name": facts["name"],
        "size_categories": [SIZES[max(0, len(str(facts["rows"])) - 3)]],
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
memory, not measurements. A slice is one point under every strategy.

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
