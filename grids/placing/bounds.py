"""What no placement can beat: the longest way through the graph, and the work over the devices."""

from typing import NamedTuple

from grids.placing.problem import Problem


class Bounds(NamedTuple):
    """Lower bounds of a step's time [s].

    critical_path: of each pass the longest way, without messages. work: all of it over the devices.
    proven: the largest that was proven, by these, part by part or by the program.
    """

    critical_path: float
    work: float
    proven: float


def bound_step(problem: Problem) -> Bounds:
    """The bounds that need no program; a pass takes at least the larger of both."""
    paths = problem.tails.max(axis=1)
    work = problem.durations.sum(axis=1) / problem.devices
    proven = sum(max(path, share) for path, share in zip(paths, work, strict=True))
    return Bounds(float(paths.sum()), float(work.sum()), float(proven))
