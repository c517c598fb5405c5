"""Reading a data set: columns by their roles, and sides of splits, all at once or in batches."""

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from grids.reading.errors import InputError, shorten, suggest_name
from sweep.exports.export import expect_arrow
from sweep.samples.columns import FACTS, FORMAT, ROLES, Role, name_split
from sweep.samples.splits import TEST, TRAIN, Split

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as pads
    import xarray as xr

Columns = dict[str, NDArray[np.generic]]
RESAMPLE = "sample it again with 'paradl sample'"


class _Column(BaseModel):
    name: str
    role: Role
    units: str
    meaning: str


class _Facts(BaseModel):
    """The facts that readers rely on; others stand beside them."""

    name: str
    rows: int
    seed: int
    splits: dict[Split, dict[str, Any]]
    missing_splits: dict[str, Any]
    versions: dict[str, Any]
    columns: list[_Column]
    inputs: list[str]
    constants: list[str]


@dataclass(frozen=True)
class Samples:
    """A data set on disk. facts: those of its `dataset.json`.

    >>> samples = open_samples("rows")  # doctest: +SKIP
    >>> samples.read(samples.list_columns("feature"), {"model": "train"})  # doctest: +SKIP
    """

    path: Path
    facts: Mapping[str, Any]

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that there are."""
        return tuple(self.facts["splits"])

    @property
    def inputs(self) -> tuple[str, ...]:
        """Parameters that there are gradients in: `elasticity_{target}_{input}`."""
        return tuple(self.facts["inputs"])

    def list_columns(self, role: Role, *, constants: bool = False) -> list[str]:
        """The columns of a role; those of one value in all rows only where they are asked for."""
        if role not in ROLES:
            raise InputError(f"unknown role {shorten(role)}", advice=suggest_name(role, ROLES))
        dropped = () if constants else self.facts["constants"]
        named = (column["name"] for column in self.facts["columns"] if column["role"] == role)
        return [name for name in named if name not in dropped]

    def read(
        self, columns: Sequence[str], sides: Mapping[str, str] | None = None
    ) -> "pd.DataFrame":
        """Columns of the rows that lie on all of these sides, by split; all rows by default."""
        files, chosen = self.open_files(), self._choose(sides or {})
        with expect_readable(self.path):
            frame: pd.DataFrame = files.to_table(list(columns), filter=chosen).to_pandas()
        return frame

    def read_batches(
        self, columns: Sequence[str], sides: Mapping[str, str] | None = None
    ) -> Iterator[Columns]:
        """The same, some rows at a time, as numpy's arrays; null is NaN."""
        files, chosen = self.open_files(), self._choose(sides or {})
        with expect_readable(self.path):
            for batch in files.to_batches(columns=list(columns), filter=chosen):
                yield {
                    name: batch.column(name).to_numpy(zero_copy_only=False)
                    for name in batch.schema.names
                }

    def to_xarray(self, columns: Sequence[str] | None = None) -> "xr.Dataset":
        """All rows, or some of their columns, along the dimension `row`, with units and roles."""
        import xarray as xr

        described = {column["name"]: column for column in self.facts["columns"]}
        frame = self.read(list(columns or described))

        def describe(name: str) -> dict[str, str]:
            facts = described[name]
            return {"long_name": facts["meaning"], "units": facts["units"], "role": facts["role"]}

        names = map(str, frame.columns)
        variables = {name: ("row", frame[name].to_numpy(), describe(name)) for name in names}
        return xr.Dataset(variables, attrs={"paradl_spec": json.dumps(self.facts["spec"])})

    def open_files(self) -> "pads.Dataset":
        """All files, as pyarrow has them. InputError: one is missing, damaged or another's."""
        import pyarrow.dataset as pads
        import pyarrow.parquet as pq

        known = {column["name"] for column in self.facts["columns"]}
        rows, files = 0, sorted(self.path.glob("data/*/*.parquet"))
        for file in files:
            _expect_file(file)
            with expect_readable(file), pq.ParquetFile(file) as opened:
                if not known <= set(opened.schema_arrow.names):
                    raise InputError("not of this data set", where=str(file), advice=RESAMPLE)
                rows += opened.metadata.num_rows
        if rows != self.facts["rows"]:
            raise InputError(
                f"expected {self.facts['rows']:,} rows in {len(files)} files, got {rows:,}: "
                "files are missing, or others were added",
                where=str(self.path / "data"),
                advice=RESAMPLE,
            )
        with expect_readable(self.path):
            return pads.dataset([str(file) for file in files], format="parquet")

    def _choose(self, sides: Mapping[str, str]) -> Any:
        import pyarrow.dataset as pads

        chosen = None
        for split, side in sides.items():
            if split not in self.splits:
                why = self.facts["missing_splits"].get(split)
                raise InputError(
                    f"no split {shorten(split)} here" + (f": {why}" if why else ""),
                    advice=suggest_name(split, self.splits),
                )
            if side not in (TRAIN, TEST):
                raise InputError(f"expected {TRAIN} or {TEST}, got {shorten(side)}", where=split)
            one = pads.field(name_split(split)) == side
            chosen = one if chosen is None else chosen & one
        return chosen


def open_samples(path: str | Path) -> Samples:
    """The data set in a folder. InputError: there is none, or of another format."""
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
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise InputError(
            f"expected a data set of format {FORMAT}, got "
            f"{shorten(facts.get('format') if isinstance(facts, dict) else facts)}",
            where=str(file),
            advice="sample it again with this paradl",
        )
    try:
        _Facts.model_validate(facts)
    except ValidationError as error:
        raise InputError("damaged", where=str(file), advice=RESAMPLE) from error
    return Samples(Path(path), facts)


@contextmanager
def expect_readable(path: Path) -> Iterator[None]:
    """InputError: what is read inside, of this file or folder, is damaged."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"cannot be read as Parquet: {shorten(str(error))}", where=str(path), advice=RESAMPLE
        ) from error


def _expect_file(path: Path) -> None:
    """InputError: no regular file; a pipe would be waited for."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(path), advice=RESAMPLE
        ) from error
    if not regular:
        raise InputError("expected a regular file", where=str(path), advice=RESAMPLE)
