"""Where graphs can be cut, and what is beside their core."""

from placement_toys import diamond, join_devices

from grids.graphs.graph import NamedTensor, Operator, link_operators
from grids.placing.cuts import Part, list_parts, strip_sides
from grids.placing.problem import Problem, pose_problem


def pose(edges: str, extra: tuple[tuple[str, str], ...] = ()) -> Problem:
    """A graph of one-letter operators: "ab bc" has two edges."""
    pairs = [(*pair,) for pair in edges.split()]
    names = sorted({each for pair in pairs for each in pair})
    takers: dict[str, list[str]] = {}
    for maker, taker in pairs:
        takers.setdefault(maker, []).append(taker)
    operators = [Operator(name, 1.0, 1.0) for name in names]
    tensors = [NamedTensor(maker, tuple(each), 1.0) for maker, each in takers.items()]
    return pose_problem(link_operators("toy", operators, tensors), join_devices(2))


def test_a_chain_is_cut_everywhere():
    assert list_parts(pose("ab bc")) == (
        Part((0,), started=False, ended=True),
        Part((0, 1), started=True, ended=True),
        Part((1, 2), started=True, ended=False),
    )


def test_a_diamond_is_cut_at_its_stem():
    parts = list_parts(pose_problem(diamond(), join_devices(2)))
    assert [part.positions for part in parts] == [(0,), (0, 1, 2, 3)]


def test_no_cut_where_a_tensor_passes_by():
    # From a to d past b, which comes before c and d.
    assert [part.positions for part in list_parts(pose("ab ad bc cd"))] == [(0,), (0, 1, 2, 3)]


def test_a_head_beside_the_trunk_is_no_part_of_the_core():
    problem = pose("ab bc cd bx")
    assert len(list_parts(problem)) == 3
    assert strip_sides(problem) == (0, 1, 2, 3)


def test_what_feeds_the_middle_is_no_part_of_the_core():
    problem = pose("bc cd de ac")  # a and b, of which more depends on neither: the first
    assert len(strip_sides(problem)) == 4


def test_a_part_that_is_started_has_done_its_first_operator():
    part = pose("ab bc").take_part((1, 2), started=True)
    assert part.durations.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert [(edge.maker, edge.taker) for edge in part.edges] == [(0, 1)]
