"""Where a graph can be cut: at operators for which all before wait, and which all behind wait for.

A pass then takes the sum of what its parts take, each from the end of one such operator to the end
of the next: whatever happens in one part, nothing overlaps another one. Parts share no more than
the devices of the operators between them.
"""

from itertools import pairwise
from typing import NamedTuple

from grids.placing.problem import Problem


class Part(NamedTuple):
    """Some operators, ascending. started: the first is the last of the part before.

    ended: the last one is the first of the next part.
    """

    positions: tuple[int, ...]
    started: bool
    ended: bool


def list_parts(problem: Problem) -> tuple[Part, ...]:
    """The parts between the operators at which the graph can be cut."""
    cuts = _list_cuts(problem)
    last = problem.operators - 1
    # Behind a cut at the very end there is nothing.
    borders = [-1, *(each for each in cuts if each != last), last]
    return tuple(
        Part(tuple(range(max(begin, 0), end + 1)), started=begin >= 0, ended=end != last)
        for begin, end in pairwise(borders)
    )


def strip_sides(problem: Problem) -> tuple[int, ...]:
    """The operators between the main source and the main sink, ascending.

    What is beside them may run at any time: a head of its own, an embedding of the other side.
    Without it a step takes no more, and the graph can be cut.
    """
    everything = (1 << problem.operators) - 1
    sinks = [each for each in range(problem.operators) if not problem.behind[each]]
    sources = [each for each in range(problem.operators) if not problem.before[each]]
    into = max((problem.before[each] | 1 << each for each in sinks), key=int.bit_count)
    out_of = max((problem.behind[each] | 1 << each for each in sources), key=int.bit_count)
    core = everything & into & out_of
    return tuple(each for each in range(problem.operators) if core >> each & 1)


def _list_cuts(problem: Problem) -> list[int]:
    """Operators that come before or after each other one, and no tensor passes by."""
    count = problem.operators
    farthest, cuts = -1, []  # the last taker of what was made so far
    for position in range(count):
        comparable = problem.before[position].bit_count() + problem.behind[position].bit_count()
        if comparable == count - 1 and farthest <= position:
            cuts.append(position)
        takers = (edge.taker for edge in problem.leaving[position])
        farthest = max([farthest, *takers])
    return cuts
