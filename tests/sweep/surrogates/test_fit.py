"""A network that is trained on slopes, too, has them right, on a law whose slopes are known."""

import numpy as np
import pandas as pd

from paradl.sweep.surrogates.fit import apply_member, fit_network, make_examples
from paradl.sweep.surrogates.rows import DEGREES, fit_encoding

INPUTS = ("batch", "inter_bandwidth")
STEP = 1e-2


def compute_law(batch, bandwidth):
    """Seconds computing and communicating: a start-up beside what is in proportion."""
    return 0.5 + 0.02 * batch, 0.05 + 8e9 / bandwidth + 0.1 * np.sqrt(batch)


def draw_rows(count: int, seed: int) -> pd.DataFrame:
    """Rows of the law with its slopes, which are differences of it."""
    rng = np.random.default_rng(seed)
    batch, bandwidth = 2 ** rng.uniform(0, 8, count), 10 ** rng.uniform(9, 11, count)
    comp, comm = compute_law(batch, bandwidth)
    columns = {
        "batch": batch,
        "inter_bandwidth": bandwidth,
        **{name: np.ones(count) for name in DEGREES},
        "memory_capacity": np.full(count, 1.6e10),
        "comp_time": comp,
        "comm_time": comm,
        "epoch_time": comp + comm,
        "memory": 1e9 + 1e7 * batch,
        "feasible": np.ones(count, bool),
        "near_kink": np.zeros(count, bool),
    }
    for place, name in enumerate(INPUTS):
        sides = []
        for sign in (1, -1):
            moved = [batch, bandwidth]
            moved[place] = moved[place] * np.exp(sign * 1e-5)
            parts = compute_law(*moved)
            sides.append([sum(parts), *parts, 1e9 + 1e7 * moved[0]])
        for target, above, below in zip(
            ("epoch_time", "comp_time", "comm_time", "memory"), *sides, strict=True
        ):
            columns[f"elasticity_{target}_{name}"] = np.log(above / below) / 2e-5
    return pd.DataFrame(columns)


def test_training_on_slopes_makes_slopes_right():
    """By differences of the network, on rows that it has not seen; few were seen."""
    train, tested = draw_rows(40, 0), draw_rows(300, 1)
    encoding = fit_encoding(train, INPUTS)
    valid = make_examples(tested, encoding)
    errors = []
    for inputs in ((), INPUTS):
        examples = make_examples(train, encoding, inputs)
        network, _ = fit_network(examples, valid, width=16, epochs=20)
        errors.append([measure_slopes(network, encoding, tested, valid, name) for name in INPUTS])
    without, with_slopes = errors
    assert all(after < 0.7 * before for before, after in zip(without, with_slopes, strict=True))


def measure_slopes(network, encoding, rows, examples, name) -> float:
    """Root mean square error of the slopes of an epoch in one input."""
    sides = []
    for sign in (1, -1):
        moved = rows.assign(**{name: rows[name] * np.exp(sign * STEP)})
        features = encoding.encode(moved[list(INPUTS)].to_numpy())
        outputs = apply_member(network, examples | {"features": features})
        sides.append(np.logaddexp(outputs[:, 0], outputs[:, 1]))
    slopes = (sides[0] - sides[1]) / (2 * STEP)
    known = rows[f"elasticity_epoch_time_{name}"].to_numpy()
    return float(np.sqrt(np.mean((slopes - known) ** 2)))
