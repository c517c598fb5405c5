"""Seconds of an iteration of layouts on a machine, with their interval, and what follows."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from grids.entries.calibration import LayoutTime
from grids.entries.systems import System
from grids.entries.transformer_rates import (
    RIVAL_SPREAD,
    describe_times,
    find_system_spread,
    read_rates,
)
from grids.inputs.layout_machine import read_network
from kernels.layouts.answers import add_seconds, time_layouts, total_exchanges
from kernels.layouts.columns import Column
from kernels.layouts.time import TERMS, count_model_flops, count_recomputed_flops
from kernels.layouts.transformer import Layouts, Training, Transformer
from kernels.names.stored import PERCENTILES
from sweep.answers.types.fitting import TimeParts


@dataclass(frozen=True)
class Target:
    """Tokens to train on, and the price of a PE-hour; None: not asked for."""

    tokens: float | None = None
    price: float | None = None


class LayoutTimes:
    """What layouts take of a machine. precision: a recipe of bytes a parameter, with a peak.

    calibrated: by runs of layouts.
    InputError: no such peak.
    """

    def __init__(
        self,
        net: Transformer,
        training: Training,
        machine: System,
        precision: str,
        target: Target,
        calibrated: LayoutTime | None = None,
    ) -> None:
        self._net, self._training, self._target = net, training, target
        slowdown = calibrated.factor if calibrated else 1.0
        self._basis = machine, precision, bool(net.experts), calibrated
        rates = replace(read_rates(machine, precision), slowdown=slowdown)
        self.speeds = rates, read_network(machine)
        self._spread = find_system_spread(*self._basis)

    def describe_basis(self) -> str:
        """Words on where times come from, and what their interval allows for."""
        return describe_times(*self._basis)

    def describe(self, layouts: Layouts) -> list[TimeParts]:
        """The time of each layout, and what follows from it."""
        asked = (self._net, layouts, self._training, *self.speeds)
        terms, totals = time_layouts(*asked), total_exchanges(*asked)
        rows = np.stack([*totals.values()], axis=1).tolist()
        exchanges = [dict(zip(totals, row, strict=True)) for row in rows]
        again = count_recomputed_flops(self._net, layouts, self._training).tolist()
        parts = zip(terms.T, layouts.pes.tolist(), again, exchanges, strict=True)
        return [self._describe(*part) for part in parts]

    def _describe(
        self, terms: Column, pes: int, again: float, exchanges: dict[str, float]
    ) -> TimeParts:
        """The time by TERMS [terms] of a layout that computes so many FLOPs again."""
        seconds = float(sum(add_seconds(terms)))
        by_term = dict(zip(TERMS, terms.tolist(), strict=True))
        low, high = (float(np.exp(PERCENTILES[n] * self._spread)) for n in (10, 90))
        tokens = self._training.batch * self._training.length / seconds
        flops = count_model_flops(self._net, self._training)
        peak = seconds * pes * self.speeds[0].peak
        train_time = self._target.tokens and self._target.tokens / tokens
        hours = train_time and train_time * pes / 3600
        price = self._target.price
        return {
            "iteration_time": seconds,
            "iteration_time_p10": seconds * low,
            "iteration_time_p90": seconds * high,
            "tokens_per_second": tokens,
            "tokens_per_pe_second": tokens / pes,
            "mfu": flops / peak,
            "hfu": (flops + again) / peak,
            "train_time": train_time,
            "pe_hours": hours,
            "cost": None if price is None or hours is None else hours * price,
            "terms": by_term,
            "exchanges": exchanges,
            "bubble_share": by_term["pipeline_bubble"] / seconds,
        }


def compare(first: float, second: float) -> float:
    """The probability that the first of two layouts takes less time, of predicted seconds."""
    return float(ndtr(np.log(second / first) / (RIVAL_SPREAD * np.sqrt(2))))
