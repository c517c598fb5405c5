"""Asking a surrogate about rows of features, and telling which lie outside of what it knows."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grids.reading.errors import InputError
from sweep.surrogates.extra import expect_extra
from sweep.surrogates.rows import EPOCH, LABELS
from sweep.surrogates.surrogate import Surrogate, load_surrogate

if TYPE_CHECKING:
    import pandas as pd

# Features outside of the range of training that an answer names.
SHOWN = 5


def predict_surrogate(
    surrogate: str | Path | Surrogate, rows: "str | Path | pd.DataFrame"
) -> "pd.DataFrame":
    """The predictions of a surrogate: one row for each row, in the same order.

    surrogate: a file of `train_surrogate`, or one that `load_surrogate` gave. rows: a Parquet or
    CSV file, a data set's folder, or a DataFrame, with a column for each feature.

    Columns: the labels that the rows have; `comp_time`, `comm_time`, `epoch_time` [s an epoch],
    `memory` [B a PE], `feasible`, `feasible_chance`; of an ensemble `epoch_time_spread`, standard
    deviation of the logarithm; `outside`, the features whose values lie outside of the range of
    training.

    InputError: no surrogate, no rows, a feature is missing, no number or below 0.
    """
    expect_extra()
    import pandas as pd

    known = surrogate if isinstance(surrogate, Surrogate) else load_surrogate(surrogate)
    frame = rows if isinstance(rows, pd.DataFrame) else read_table(Path(rows))
    said = known.apply(frame)
    columns = {
        **{name: frame[name].to_numpy() for name in LABELS if name in frame},
        "comp_time": said.comp_time,
        "comm_time": said.comm_time,
        EPOCH: said.epoch_time,
        "memory": said.memory,
        "feasible": said.feasible,
        "feasible_chance": said.chance,
    }
    if len(known.members) > 1:
        columns["epoch_time_spread"] = said.spread
    return pd.DataFrame({**columns, "outside": name_outside(known, frame)})


def name_outside(surrogate: Surrogate, frame: "pd.DataFrame") -> list[str]:
    """The features outside of the range of training of each row, with ', ' between."""
    names = np.array(surrogate.encoding.watched)
    named = []
    for row in surrogate.encoding.find_outside(frame):
        outside = names[row]
        more = [f"{len(outside) - SHOWN} more"] if len(outside) > SHOWN else []
        named.append(", ".join([*outside[:SHOWN], *more]))
    return named


def read_table(path: Path) -> "pd.DataFrame":
    """The rows of a Parquet or CSV file, or of a data set. InputError: no such, a damaged one."""
    import pandas as pd
    import pyarrow as pa

    if path.is_dir():
        from sweep.samples.read import open_samples

        samples = open_samples(path)
        return samples.read([*LABELS, *samples.list_columns("feature", constants=True)])
    if not path.is_file():
        raise InputError("no such file", where=str(path))
    try:
        frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise InputError(
            "no table that can be read", where=str(path), advice="give Parquet, or .csv"
        ) from error
    if not len(frame):
        raise InputError("no rows", where=str(path))
    return frame
