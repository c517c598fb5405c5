"""Effort of measurements: `--quick` takes minutes less and is noisier."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Rounds and sizes of every measurement.

    rounds: of actions of seconds. short_rounds: of actions of milliseconds. blocks: log2 of the
    cells of blocks to evaluate. strategies: number in stored cubes, one block each. sampled:
    strategies whose blocks the codecs compress. searched: PE counts of the searched space. kills:
    of running sweeps. cases: mutated files; the same seed makes the same ones.
    """

    rounds: int
    short_rounds: int
    blocks: tuple[int, ...]
    strategies: int
    sampled: int
    searched: int
    kills: int
    cases: int
    seed: int = 1


FULL = Effort(
    rounds=5,
    short_rounds=15,
    blocks=(16, 18, 20, 22),
    strategies=12,
    sampled=4,
    searched=8192,
    kills=50,
    cases=10_000,
)
QUICK = Effort(
    rounds=2,
    short_rounds=4,
    blocks=(16, 22),
    strategies=4,
    sampled=1,
    searched=1024,
    kills=5,
    cases=1_000,
)
