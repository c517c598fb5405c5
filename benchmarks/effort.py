"""How long to measure: `--quick` takes a minute or two, and is noisier."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Rounds and sizes of every measurement.

    rounds: of what takes seconds. short_rounds: of what takes milliseconds. blocks: log2 cells of
    the blocks that the kernel fills. strategies: of the cubes that are stored, a block each.
    sampled: strategies whose blocks every codec compresses. scalar_cells: that the scalar loop
    predicts. searched: PE counts of the space that is searched. kills: of running sweeps. cases:
    files that are mutated, the same ones for the same seed.
    """

    rounds: int
    short_rounds: int
    blocks: tuple[int, ...]
    strategies: int
    sampled: int
    scalar_cells: int
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
    scalar_cells=2000,
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
    scalar_cells=512,
    searched=1024,
    kills=5,
    cases=1_000,
)
