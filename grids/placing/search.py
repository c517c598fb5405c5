"""Good placements in little time: a list schedule, improved move by move.

A move puts a run of operators on another device: a chain, or one operator where a chain is cut.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from paradl.grids.placing.problem import Placement, Problem
from paradl.grids.placing.schedule import rank_operators, time_step

# Placements kept in memory, times operators: about 100 MB.
MOST_SEEN = 10_000_000

Fixed = Mapping[int, int]  # operators whose device is given
Tick = Callable[[int], bool]  # whether so many operators may still be scheduled
Measure = Callable[[Placement], float]  # a step's time [s]


def search(
    problem: Problem,
    fixed: Fixed,
    rounds: int,
    spend: Tick,
    *,
    first: Sequence[Placement] = (),
    goal: float = 0.0,
    measure: Measure | None = None,
) -> tuple[float, Placement] | None:
    """Return the best placement and its step time [s]; None if none fits memory.

    fixed: devices of some operators. rounds: random perturbations, each improved again. first:
    further placements to start from. goal [s]: a lower bound; the search stops there. measure: the
    time of a step [s], by default that of its schedule.
    """
    search = _Search(problem, fixed, spend, measure or partial(time_step, problem))
    for placement in (*first, *list_first(problem, fixed)):
        search.improve(placement)
    chance = random.Random(0)  # a fixed seed, for the same answer each time
    possible = problem.devices ** len(search.free)
    for _ in range(rounds):
        if search.best is None or search.best[0] <= goal or not spend(0):
            break
        if len(search.seen) == possible:  # of a small graph: none is left to find
            break
        search.improve(search.shake(search.best[1], chance))
    return search.best


def list_chains(problem: Problem) -> list[tuple[int, ...]]:
    """List maximal chains: each operator is the only taker of the one before, and has no other."""
    chain_of: dict[int, list[int]] = {}
    for position in range(problem.operators):
        makers = {edge.maker for edge in problem.entering[position]}
        (maker,) = makers if len(makers) == 1 else (None,)
        alone = maker is not None and len({e.taker for e in problem.leaving[maker]}) == 1
        chain = chain_of[maker] if alone and maker is not None else []
        chain.append(position)
        chain_of[position] = chain
    return [tuple(chain) for chain in {id(chain): chain for chain in chain_of.values()}.values()]


def list_first(problem: Problem, fixed: Fixed) -> list[Placement]:
    """List starting placements: everything on each device in turn, and two list schedules."""
    # One device sends no messages, so the result is never slower than that, if it fits there.
    alone = [
        tuple(fixed.get(position, device) for position in range(problem.operators))
        for device in range(problem.devices)
    ]
    return [*alone, _place_greedily(problem, fixed, whole=False), _place_greedily(problem, fixed)]


def _place_greedily(problem: Problem, fixed: Fixed, whole: bool = True) -> Placement:
    """Place operators by rank, each where it ends first (HEFT without gaps).

    whole: keep chains on one device.
    """
    durations = problem.durations.sum(axis=0).tolist()
    count, devices = problem.operators, problem.devices
    ranks = rank_operators(problem, durations, (0,) * count)
    placement, ends = [0] * count, [0.0] * count
    free, filled = [0.0] * devices, [0.0] * devices
    head = {position: chain[0] for chain in list_chains(problem) for position in chain}
    for position in sorted(range(count), key=lambda n: (-ranks[n], n)):
        options = range(devices)
        if position in fixed:
            options = range(fixed[position], fixed[position] + 1)
        elif whole and head[position] != position:
            options = range(placement[head[position]], placement[head[position]] + 1)

        def end_on(device: int, position: int = position) -> tuple[bool, float]:
            arrivals = [
                ends[edge.maker] + edge.delays[placement[edge.maker]][device]
                for edge in problem.entering[position]
            ]
            full = filled[device] + problem.held[position] > problem.room
            return full, max([free[device], *arrivals]) + durations[position]

        device = min(options, key=end_on)
        placement[position] = device
        ends[position] = free[device] = end_on(device)[1]
        filled[device] += problem.held[position]
    return tuple(placement)


class _Search:
    """The best placement so far, and the moves between placements."""

    def __init__(self, problem: Problem, fixed: Fixed, spend: Tick, measure: Measure) -> None:
        self.problem, self.spend, self.measure = problem, spend, measure
        self.best: tuple[float, Placement] | None = None
        self.free = [position for position in range(problem.operators) if position not in fixed]
        chains = list_chains(problem)
        movable = (tuple(n for n in chain if n not in fixed) for chain in chains)
        self.chains = [chain for chain in movable if chain]
        self.seen: dict[Placement, tuple[float, float]] = {}

    def improve(self, placement: Placement) -> None:
        """Move runs for as long as a move helps."""
        value, better = self._value(placement), True
        while better:
            better = False
            for run in [*self.chains, *self._list_cut(placement)]:
                for device in range(self.problem.devices):
                    moved = _move(placement, run, device)
                    if not self.spend(0 if moved in self.seen else self.problem.operators):
                        return
                    if (other := self._value(moved)) < value:
                        placement, value, better = moved, other, True

    def shake(self, placement: Placement, chance: random.Random) -> Placement:
        """Put two or three runs on random devices."""
        for run in chance.sample(self.chains, min(len(self.chains), chance.randint(2, 3))):
            end = chance.randint(1, len(run))
            # Mostly whole chains: a cut chain costs messages.
            part = run if chance.random() < 0.7 else run[chance.randrange(end) : end]
            placement = _move(placement, part, chance.randrange(self.problem.devices))
        return placement

    def _list_cut(self, placement: Placement) -> list[tuple[int, ...]]:
        """List operators with a neighbour on another device, each as a run of its own."""
        single = {
            position
            for edge in self.problem.edges
            if placement[edge.maker] != placement[edge.taker]
            for position in (edge.maker, edge.taker)
        }
        return [(position,) for position in self.free if position in single]

    def _value(self, placement: Placement) -> tuple[float, float]:
        """Return bytes over the devices' room [B] and the step's time [s]; less is better."""
        if placement in self.seen:
            return self.seen[placement]
        problem = self.problem
        # Placements that do not fit are compared, too: moves may lead from them to one that does.
        beyond = 0.0
        if problem.room < float("inf"):
            excess = problem.measure_memory(placement) - problem.room
            beyond = float(excess.clip(min=0.0).sum())
        time = self.measure(placement)
        # Bounds the memory; placements that return are timed again.
        if len(self.seen) * problem.operators > MOST_SEEN:
            self.seen.clear()
        self.seen[placement] = (beyond, time)
        if not beyond and (self.best is None or time < self.best[0]):
            self.best = (time, placement)
        return beyond, time


def _move(placement: Placement, run: tuple[int, ...], device: int) -> Placement:
    """Return the placement with a run of operators on another device."""
    moved = list(placement)
    for position in run:
        moved[position] = device
    return tuple(moved)
