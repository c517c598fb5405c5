"""Predict rows of features with a surrogate, and name features outside its training range."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.stored import EPOCH
from paradl.sweep.samples.read import open_samples
from paradl.sweep.surrogates.rows import LABELS
from paradl.sweep.surrogates.surrogate import Surrogate, expect_extra, load_surrogate

if TYPE_CHECKING:
    import pandas as pd

# Most features outside the training range that an answer names.
SHOWN = 5


def predict_surrogate(
    surrogate: str | Path | Surrogate, rows: "str | Path | pd.DataFrame"
) -> "pd.DataFrame":
    """Predict rows; return a table with one row for each, in the same order.

    surrogate: a file of `train_surrogate`, or a loaded one. rows: a Parquet or CSV file, a data
    set's folder, or a DataFrame, with a column for each feature.

    Columns: labels of the rows, if any; `comp_time`, `comm_time`, `epoch_time` [s per epoch],
    `memory` [B per PE], `feasible`, `feasible_chance`; of an ensemble `epoch_time_spread`, the
    standard deviation of the logarithm; `outside`, features outside the training range.

    InputError: no surrogate, no rows, a feature is missing, not numeric or negative.

    >>> import paradl
    >>> axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    >>> space = {"axes": axes | {"pe": 64, "batch": {"loguniform": [8, 256]}}, "oracle": "paper"}
    >>> _ = paradl.sample(space, "rows", 200)
    >>> _ = paradl.train_surrogate("rows", "net.eqx", epochs=2, width=8)
    >>> answer = paradl.predict_surrogate("net.eqx", "rows")
    >>> len(answer), sorted({"epoch_time", "memory", "feasible"} & set(answer))
    (200, ['epoch_time', 'feasible', 'memory'])
    """
    expect_extra()
    import pandas as pd

    known = surrogate if isinstance(surrogate, Surrogate) else load_surrogate(surrogate)
    frame = rows if isinstance(rows, pd.DataFrame) else read_table(Path(rows))
    predictions = known.apply(frame)
    columns = {
        **{name: frame[name].to_numpy() for name in LABELS if name in frame},
        "comp_time": predictions.comp_time,
        "comm_time": predictions.comm_time,
        EPOCH: predictions.epoch_time,
        "memory": predictions.memory,
        "feasible": predictions.feasible,
        "feasible_chance": predictions.chance,
    }
    if len(known.members) > 1:
        columns["epoch_time_spread"] = predictions.spread
    return pd.DataFrame({**columns, "outside": name_outside(known, frame)})


def name_outside(surrogate: Surrogate, frame: "pd.DataFrame") -> list[str]:
    """Name the features outside the training range [row], separated by ', '."""
    names = np.array(surrogate.encoding.watched)
    named = []
    for row in surrogate.encoding.find_outside(frame):
        outside = names[row]
        rest = [f"{len(outside) - SHOWN} more"] if len(outside) > SHOWN else []
        named.append(", ".join([*outside[:SHOWN], *rest]))
    return named


def read_table(path: Path) -> "pd.DataFrame":
    """Read rows of a Parquet or CSV file, or of a data set. InputError: none, or damaged."""
    import pandas as pd
    import pyarrow as pa

    if path.is_dir():
        samples = open_samples(path)
        return samples.read([*LABELS, *samples.list_columns("feature", constants=True)])
    if not path.is_file():
        raise InputError("no such file", where=str(path))
    try:
        frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise InputError(
            "cannot be read as a table", where=str(path), advice="give a Parquet or .csv file"
        ) from error
    if not len(frame):
        raise InputError("no rows", where=str(path))
    return frame
