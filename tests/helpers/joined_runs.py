"""One training run in several words, and how far their answers are from each other.

One run must have one answer, whatever words say it (tests/test_join.py). The contract:

- Order: `a+b` is written outermost first. `tp pp dp` in short words means Megatron's order: tensor
  innermost, then context, data, and pipeline outermost. Runs are compared where the orders are
  equal, or where all degrees but one are 1.
- Passes: the global batch is B = A p1 b. `accumulate` A is A separate flushes of b samples a
  replica, whose gradients are exchanged once. `micro` cuts one flush of b samples into
  m = b / micro micro-batches. `segments` S is m. Where `micro` is not stated, it is the whole flush
  without stages and b / segments with stages.
- Equal: the same in single precision, as stored, and to 1e-12 in double precision, in iteration
  time, every term by name, memory and every part of it, limits and the 80 % interval. A term or a
  part that an answer does not name is 0.

    python tests/helpers/joined_runs.py    # how far apart the answers are today
"""

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from joined_words import BUBBLES, NETWORKS, OWN, PAIRS, Network, Pair, Words
from open_answers import predict_grid

import paradl
from paradl.grids.design_space import Configuration
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.names.terms import TERMS
from paradl.sweep.cube.variables import name_limits

GROUPS = ("times", "epoch", "terms", "memory", "parts", "batch", "limit")
Answer = dict[str, Any]


class Runs:
    """Answers, each computed once; networks of one's own and stores are written to a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers: dict[tuple[Network, Words], Answer | InputError] = {}
        (folder / "own.yaml").write_text(json.dumps(OWN))

    def ask(self, net: Network, words: Words) -> Answer:
        """Answer of a run in groups of numbers by name; InputError if its words are refused."""
        if (net, words) not in self.answers:
            try:
                answer: Answer | InputError = getattr(self, f"_{words.by}")(net, words)
            except InputError as error:
                answer = error
            self.answers[net, words] = answer
        answer = self.answers[net, words]
        if isinstance(answer, InputError):
            raise answer
        return answer

    def compare(self, net: Network, pair: Pair) -> tuple[Answer, Answer]:
        """Answers of a pair of words."""
        return self.ask(net, pair.one), self.ask(net, pair.two)

    def _model(self, net: Network) -> str:
        return str(self.folder / "own.yaml") if net.name == "own" else net.name

    def _axes(self, net: Network, words: Words) -> dict[str, Any]:
        axes = {"model": self._model(net), "dataset": net.dataset, "system": net.system}
        return axes | {
            "strategy": self._fill(net, words),
            "pe": words.pe,
            "batch": net.batch * words.flushes,
        }

    def _fill(self, net: Network, words: Words) -> str:
        return words.strategy.format(b=net.batch, c=net.batch // 4)

    def _predict(self, net: Network, words: Words) -> Answer:
        more: dict[str, Any] = {
            "parameters": dict(words.parameters),
            "settings": dict(words.settings),
        }
        # As `paradl.predict`, without the smallest group that fits: a sixth of the time.
        answer = predict_grid(Configuration(**self._axes(net, words), **more).grid())
        interval = answer["intervals"]["iteration_time"]
        ends = {name: interval[name] for name in ("p10", "p90")} if interval else {}
        iterations = answer["iterations"]
        names = ("comp_time", "comm_time", "iteration_time")
        return {
            "times": {name: answer[name] for name in names} | ends,
            "epoch": {f"epoch_{name}": time and time * iterations for name, time in ends.items()},
            "terms": answer["terms"],
            "memory": {"memory": answer["memory"]},
            "parts": answer["memory_parts"],
            "batch": {"global_batch": answer["global_batch"]},
            "limit": dict.fromkeys(answer["limit"], 1.0),
        }

    def _cell(self, net: Network, words: Words) -> Answer:
        """Sweep one cell into a store."""
        terms = LAYOUT_TERMS if net.kind in ("blocks", "experts") else TERMS
        ends = ("epoch_time_p10", "epoch_time_p90")
        outputs = ["comp_time", "comm_time", "memory", "limit", *terms, *ends]
        spec = {"axes": self._axes(net, words), "outputs": outputs}
        cell = paradl.run(spec, self.folder / f"{len(self.answers)}.zarr").load().squeeze()
        return {
            "stored": {},
            "times": {name: cell[name].item() for name in outputs[:2]},
            "epoch": {name.replace("_time", ""): cell[name].item() for name in ends},
            "terms": {name: cell[name].item() for name in terms},
            "memory": {"memory": cell["memory"].item()},
            "limit": dict.fromkeys(name_limits(cell["limit"].item()), 1.0),
        }

    def _sample(self, net: Network, words: Words) -> Answer:
        """Draw rows over a bandwidth, and take the first."""
        axes = self._axes(net, words) | {"inter_bandwidth": {"loguniform": [1e9, 1e11]}}
        place = self.folder / f"{net.name} rows"
        paradl.sample({"axes": axes}, place, 2, gradients=None)
        path = min(place.glob("data/*/*.parquet"))  # each row may be in a split of its own
        return self._read(pq.read_table(path).to_pylist()[0])

    def _drawn(self, net: Network, words: Words) -> Answer:
        """Predict what the first row of the sample is of."""
        row = self.ask(net, replace(words, by="sample"))["row"]
        return self._predict(
            net, replace(words, parameters=(("inter_bandwidth", row["inter_bandwidth"]),))
        )

    def _best(self, net: Network, words: Words) -> Answer:
        """Rank a strategy whose settings are left open."""
        cube = paradl.compute_space(**self._axes(net, words))
        return self._read(paradl.best(cube).iloc[0].to_dict())

    def _winner(self, net: Network, words: Words) -> Answer:
        """Predict the best with all its settings stated."""
        row = self.ask(net, replace(words, by="best"))["row"]
        chosen = {"group": row["group_size"], "segments": row["segment_count"]}
        if row.get("layout"):
            micro = row["layout"].partition("mb")[2].split()[0]
            chosen |= {**row["degrees"], "micro": micro}
        settings = words.strategy
        for name, value in chosen.items():
            settings = settings.replace(f"{name}=best", f"{name}={value}")
        return self._predict(net, replace(words, strategy=settings))

    @staticmethod
    def _read(row: dict[Any, Any]) -> Answer:
        """Numbers of a row in single precision."""
        ends = ("epoch_time_p10", "epoch_time_p90")
        return {
            "stored": {},
            "row": row,
            "times": {name: row[name] for name in ("comp_time", "comm_time")},
            "epoch": {name.replace("_time", ""): row[name] for name in ends if name in row},
            "memory": {"memory": row["memory"]},
            "batch": {"global_batch": row["global_batch"]},
        }


def list_differences(one: Answer, two: Answer) -> dict[str, tuple[float, float]]:
    """Numbers that are not equal, in the groups that both answers have."""
    different = {}
    for group in (name for name in GROUPS if name in one and name in two):
        ours, theirs = one[group], two[group]
        partial = group in ("times", "epoch")
        for name in ours.keys() & theirs.keys() if partial else ours.keys() | theirs.keys():
            pair = [side.get(name, 0.0) for side in (ours, theirs)]
            first, second = (math.nan if number is None else number for number in pair)
            if not _are_equal(first, second, stored="stored" in one):
                different[f"{group}: {name}"] = first, second
    return different


def _are_equal(first: float, second: float, *, stored: bool) -> bool:
    """True if both are one number in single precision, and unless stored to 1e-12 in double."""
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    near = stored or math.isclose(first, second, rel_tol=1e-12)
    return near and bool(np.float32(first) == np.float32(second))


def find_ratios(one: Answer, two: Answer) -> tuple[float, float]:
    """Ratios of the second answer to the first, in time and in memory; NaN if undefined."""
    time = "iteration_time" if "iteration_time" in one["times"] else "comp_time"
    numbers = [(two["times"][time], one["times"][time])]
    numbers += [(two["memory"]["memory"], one["memory"]["memory"])]
    seconds, memory = (above / below if above and below else math.nan for above, below in numbers)
    return seconds, memory


def print_table() -> None:
    """Print each network's ratios of time and memory in each pair, or why words are refused."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        for name, pair in {**PAIRS, **BUBBLES}.items():
            for net in filter(pair.suits, NETWORKS):
                try:
                    answers = runs.compare(net, pair)
                except InputError as error:
                    print(f"{name:42}{net.name:14} refused: {str(error)[:110]}")
                else:
                    time, memory = find_ratios(*answers)
                    count = len(list_differences(*answers))
                    print(f"{name:42}{net.name:14}{time:9.4f}{memory:9.4f}{count:4} differ")


if __name__ == "__main__":
    print_table()
