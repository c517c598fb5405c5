"""Read a data set: columns by role, rows by the sides of splits."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from paradl.grids.reading.errors import InputError, shorten, suggest_name
from paradl.sweep.exports.export import expect_arrow
from paradl.sweep.samples.columns import FACTS, FORMAT, ROLES, Role
from paradl.sweep.samples.splits import SPLITS, TEST, TRAIN, name_split

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as pads

RESAMPLE = "sample it again with 'paradl sample'"


class _Column(BaseModel):
    name: str
    role: Role


class _Facts(BaseModel):
    """The facts of `dataset.json` that readers rely on; the file has more."""

    format: Literal[1]  # FORMAT
    name: str
    rows: int
    seed: int
    splits: dict[str, dict[str, object]]
    missing_splits: dict[str, str]
    versions: dict[str, str]
    columns: list[_Column]
    inputs: list[str]
    constants: list[str]


@dataclass(frozen=True)
class Samples:
    """Data set on disk. facts: the contents of its `dataset.json`.

    >>> samples = open_samples("rows")  # doctest: +SKIP
    >>> samples.read(samples.list_columns("feature"), {"model": "train"})  # doctest: +SKIP
    """

    path: Path
    facts: Mapping[str, Any]

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self.facts["splits"])

    @property
    def inputs(self) -> tuple[str, ...]:
        """Parameters with gradients, in columns `elasticity_{target}_{input}`."""
        return tuple(self.facts["inputs"])

    def list_columns(self, role: Role, *, constants: bool = False) -> list[str]:
        """List the columns of a role, without those that are constant unless `constants`."""
        if role not in ROLES:
            raise InputError.unknown("role", role, ROLES)
        dropped = () if constants else self.facts["constants"]
        named = (column["name"] for column in self.facts["columns"] if column["role"] == role)
        return [name for name in named if name not in dropped]

    def read(
        self, columns: Sequence[str], sides: Mapping[str, str] | None = None
    ) -> "pd.DataFrame":
        """Read columns of all rows, or of those on a side of each given split.

        sides: `train` or `test` by split. InputError: no such split or side, a damaged file.
        """
        import pyarrow.dataset as pads

        chosen = sides or {}
        self.expect_splits(chosen)
        matches = pads.scalar(True)
        for split, side in chosen.items():
            if side not in (TRAIN, TEST):
                raise InputError(f"expected {TRAIN} or {TEST}, got {shorten(side)}", where=split)
            matches &= pads.field(name_split(split)) == side
        files = self.open_files()
        with expect_readable(self.path):
            frame: pd.DataFrame = files.to_table(list(columns), filter=matches).to_pandas()
        return frame

    def expect_splits(self, splits: Iterable[str]) -> None:
        """Raise InputError if the data set lacks one of these splits."""
        for split in splits:
            if split not in self.splits:
                why = self.facts["missing_splits"].get(split)
                raise InputError(
                    f"no split {shorten(split)} in {self.path}" + (f": {why}" if why else ""),
                    where="splits",
                    advice=suggest_name(split, self.splits),
                )

    def open_files(self) -> "pads.Dataset":
        """Open all files as a pyarrow data set. InputError: one is missing, damaged or foreign."""
        import pyarrow.dataset as pads
        from pyarrow.fs import LocalFileSystem

        known = {column["name"] for column in self.facts["columns"]}
        rows, files = 0, sorted(self.path.glob("data/*/*.parquet"))
        # Fragments keep the metadata that are checked here for reading: one column of 56 files of
        # 223 takes 0.3 s of CPU, and 0.5 s if they are parsed twice (2026-11).
        parquet, disk, parts = pads.ParquetFileFormat(), LocalFileSystem(), []
        for file in files:
            with expect_readable(file):
                _expect_file(file)
                parts.append(parquet.make_fragment(str(file), disk))
                if not known <= set(parts[-1].physical_schema.names):
                    raise InputError("not part of this data set", where=str(file), advice=RESAMPLE)
                rows += parts[-1].metadata.num_rows
        if rows != self.facts["rows"]:
            raise InputError(
                f"expected {self.facts['rows']:,} rows in {len(files)} files, got {rows:,}: "
                "files were removed or added",
                where=str(self.path / "data"),
                advice=RESAMPLE,
            )
        return pads.FileSystemDataset(parts, parts[0].physical_schema, parquet, disk)


def open_samples(path: str | Path) -> Samples:
    """Open the data set in a folder. InputError: none there, or one of another format.

    >>> import paradl
    >>> axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    >>> space = {"axes": axes | {"pe": 64, "batch": {"loguniform": [8, 256]}}, "oracle": "paper"}
    >>> _ = paradl.sample(space, "rows", 200)
    >>> samples = paradl.open_samples("rows")
    >>> samples.splits, len(samples.read(["batch"], {"size": "train"}))
    (('random', 'size'), 160)
    """
    expect_arrow()
    file = Path(path) / FACTS
    try:
        _expect_file(file)
        facts = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"no data set here: {FACTS} is missing or damaged",
            where=str(path),
            advice="make one with 'paradl sample'",
        ) from error
    try:
        if not set(_Facts.model_validate(facts).splits) <= set(SPLITS):
            raise ValueError("unknown splits")
    except ValueError as error:
        raise InputError(
            f"damaged, or not of format {FORMAT}", where=str(file), advice=RESAMPLE
        ) from error
    return Samples(Path(path), facts)


@contextmanager
def expect_readable(path: Path) -> Iterator[None]:
    """Turn errors of reading Parquet inside the block into an InputError that names `path`."""
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"cannot be read as Parquet: {shorten(str(error))}", where=str(path), advice=RESAMPLE
        ) from error


def _expect_file(path: Path) -> None:
    """Raise InputError unless it is a regular file: reading a pipe would wait forever."""
    if not path.is_file():
        raise InputError("missing, or not a regular file", where=str(path), advice=RESAMPLE)
