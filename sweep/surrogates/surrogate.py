"""A surrogate: an encoding and networks, and its file.

The file is a line with the SHA-256 of the rest, a line of JSON, the facts, and equinox's leaves:
plain arrays whose number, shapes and types follow from the facts. Loading runs no code, and pickles
are refused. It predicts rows of features, and names those outside its training range.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, FiniteFloat

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.stored import EPOCH
from paradl.sweep.errors import expect_libraries
from paradl.sweep.exports.target import write_beside
from paradl.sweep.samples.features import FEATURES
from paradl.sweep.samples.read import open_samples
from paradl.sweep.surrogates.rows import (
    DEGREES,
    LABELS,
    ROOM,
    Encoding,
    read_kinds,
    read_room,
    read_values,
)

VERSION = 4
MOST_MEMBERS, MOST_WIDTH = 100, 4096
# [B] Largest file: ensembles have some MB.
LARGEST = 2**30
# [logarithm] Outputs are clipped here, so that extrapolations stay finite.
FAR = 80.0
NEEDED = ("equinox", "optax", "pyarrow")
NUMBERS = ("offset", "mean", "scale", "low", "high")


@dataclass(frozen=True, eq=False)
class Surrogate:
    """An ensemble of networks. facts: what they were trained on, and how."""

    encoding: Encoding
    members: tuple[Any, ...]
    facts: Mapping[str, Any]

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict rows of features: columns of `predict_surrogate`, from `comp_time` to the spread.

        InputError: a feature is missing, not numeric or negative.
        """
        from paradl.sweep.surrogates.fit import apply_member

        read_values(frame, (*DEGREES, ROOM))  # columns that the encoding may lack
        features = self.encoding.encode(read_values(frame, self.encoding.names))
        arrays = {"features": features, "kinds": read_kinds(frame), "room": read_room(frame)}
        outputs = np.stack([apply_member(member, arrays) for member in self.members])
        return read_outputs(outputs.astype(np.float64))


def read_outputs(outputs: Floats) -> pd.DataFrame:
    """Average the members' outputs [member, row, output] to predictions."""
    outputs = np.clip(outputs, -FAR, FAR)
    comp, comm, memory = np.exp(outputs[..., :-1].mean(axis=0).T)
    chance = (1 / (1 + np.exp(-outputs[..., -1]))).mean(axis=0)
    answers = {"comp_time": comp, "comm_time": comm, EPOCH: comp + comm, "memory": memory}
    answers |= {"feasible": chance >= 0.5, "feasible_chance": chance}
    if len(outputs) > 1:
        epochs = np.logaddexp(outputs[..., 0], outputs[..., 1])
        answers["epoch_time_spread"] = epochs.std(axis=0, ddof=1)
    return pd.DataFrame(answers)


class Facts(BaseModel, extra="allow"):
    """The facts that a file's arrays and answers depend on; the file has more.

    width, members: of networks, and their number.
    """

    version: Literal[4]  # VERSION
    learner: Literal["network"]  # earlier versions had trees, too
    width: int = Field(ge=1, le=MOST_WIDTH)
    members: int = Field(ge=1, le=MOST_MEMBERS)
    features: list[str] = Field(min_length=1)
    constants: dict[str, FiniteFloat]
    splits: list[str]
    splits_of_data: dict[str, dict[str, object]]
    data_seed: int


def save_surrogate(surrogate: Surrogate, path: Path, *, force: bool) -> None:
    """Write a surrogate's file. InputError: the file exists. RunError: the disk is full."""
    import equinox as eqx

    encoding = surrogate.encoding
    facts = {
        **surrogate.facts,
        "version": VERSION,
        "learner": "network",
        "members": len(surrogate.members),
        "features": list(encoding.names),
        "constants": dict(encoding.constants),
    }
    numbers = {name: getattr(encoding, name) for name in NUMBERS}
    data = BytesIO(json.dumps(facts, allow_nan=False).encode() + b"\n")
    data.seek(0, 2)  # behind the facts
    eqx.tree_serialise_leaves(data, (numbers, surrogate.members))
    with write_beside(path, force=force) as folder:
        digest = sha256(data.getvalue()).hexdigest().encode()
        (folder / path.name).write_bytes(digest + b"\n" + data.getvalue())


def load_surrogate(path: str | Path) -> Surrogate:
    """Load a file of `train_surrogate`, without running any code in it.

    InputError: no file, a damaged one, one of another version. RunError: a library is missing.

    >>> import paradl
    >>> axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    >>> space = {"axes": axes | {"pe": 64, "batch": {"loguniform": [8, 256]}}, "oracle": "paper"}
    >>> _ = paradl.sample(space, "rows", 200)
    >>> _ = paradl.train_surrogate("rows", "net.eqx", epochs=2, width=8)
    >>> surrogate = paradl.load_surrogate("net.eqx")
    >>> surrogate.facts["rows"], surrogate.facts["splits"]
    (190, ['random'])
    """
    expect_extra()
    file = Path(path)
    if not file.is_file():
        raise InputError("no such file", where=str(path))
    try:
        return _read(file)
    # MemoryError: a damaged array header may state any size.
    except (OSError, ValueError, RuntimeError, TypeError, SyntaxError, MemoryError) as error:
        raise InputError(
            "not a surrogate of this version of paradl, or a damaged one",
            where=str(path),
            advice="train it again with 'paradl surrogate train'",
        ) from error


def _read(path: Path) -> Surrogate:
    """Read a file; ValueError and others if facts and arrays do not match."""
    import equinox as eqx
    import jax

    from paradl.sweep.surrogates.fit import make_network

    digest, _, data = path.read_bytes().partition(b"\n")
    # Against damage: a file that was forged has a digest of its own.
    if digest != sha256(data).hexdigest().encode():
        raise ValueError("damaged")
    head, _, arrays = data.partition(b"\n")
    facts = Facts.model_validate_json(head)
    count = len(facts.features)
    if not {*facts.features, *facts.constants} <= set(FEATURES):
        raise ValueError("unknown features")
    # Networks whose arrays have the shapes of those in the file.
    network = make_network(np.random.default_rng(0), count, len(DEGREES), facts.width)
    like = (dict.fromkeys(NUMBERS, np.empty(count)), (network,) * facts.members)
    numbers, members = eqx.tree_deserialise_leaves(BytesIO(arrays), like)
    # A NaN in one weight would make every answer NaN, without a message.
    if not all(np.isfinite(array).all() for array in jax.tree.leaves((numbers, members))):
        raise ValueError("not finite")
    if (numbers["scale"] <= 0).any() or not set(facts.splits) <= set(facts.splits_of_data):
        raise ValueError("a scale of 0, or an unknown split")
    encoding = Encoding(tuple(facts.features), facts.constants, **numbers)
    return Surrogate(encoding, members, facts.model_dump())


def expect_extra() -> None:
    """Raise RunError if a library that surrogates need is not installed."""
    expect_libraries("surrogates", NEEDED, "surrogate")


# Most features outside the training range that an answer names.
SHOWN = 5


def predict_surrogate(
    surrogate: str | Path | Surrogate, rows: str | Path | pd.DataFrame
) -> pd.DataFrame:
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
    known = surrogate if isinstance(surrogate, Surrogate) else load_surrogate(surrogate)
    frame = rows if isinstance(rows, pd.DataFrame) else read_table(Path(rows))
    labels = frame[[name for name in LABELS if name in frame]].reset_index(drop=True)
    answers = pd.concat([labels, known.apply(frame)], axis=1)
    names = np.array(known.encoding.watched)
    outside = [names[row].tolist() for row in known.encoding.find_outside(frame)]
    return answers.assign(
        outside=[
            ", ".join(row if len(row) <= SHOWN else [*row[:SHOWN], f"{len(row) - SHOWN} more"])
            for row in outside
        ]
    )


def read_table(path: Path) -> pd.DataFrame:
    """Read rows of a Parquet or CSV file, or of a data set. InputError: none, or damaged."""
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
