"""Sums and maxima over stages, runs of consecutive layers that differ from cell to cell."""

from paradl.kernels.arrays import (
    AnyArray,
    Cells,
    Ends,
    PerLayer,
    PerStage,
    map_leading,
    take_at,
    xp,
)


def stage_sums(values: PerLayer, ends: Ends, chunks: int = 1) -> PerStage:
    """Sum over each stage's layers, as a difference of prefix sums.

    chunks: parts of a stage, of which `ends` has the first of all stages, then the second.
    """
    # Prefix sums serve all stages, which differ from cell to cell. A difference rounds unlike the
    # sum: one stage equals serial to 1e-12, while other groups of one PE equal it exactly
    # (tests/kernels/test_oracle.py).
    prefix = xp.cumsum(xp.asarray(values), axis=0)
    prefix = xp.concatenate([xp.zeros_like(prefix[:1]), prefix])
    # A stage that a cell lacks starts and ends at G, which gives exactly 0.
    return join_chunks(take_at(prefix, ends) - take_at(prefix, _starts(ends)), chunks)


def list_chunks(parts: PerStage, chunks: int) -> PerStage:
    """Return values of parts [part, cells] by chunk and stage [chunk, stage, cells]."""
    return xp.reshape(parts, (chunks, -1, *xp.shape(parts)[1:]))


def join_chunks(parts: PerStage, chunks: int) -> PerStage:
    """Sum values of parts [part, cells] over the chunks of each stage."""
    return parts if chunks == 1 else xp.sum(list_chunks(parts, chunks), axis=0)


def _starts(ends: Ends) -> Ends:
    """Return each stage's first layer."""
    return xp.concatenate([xp.zeros_like(ends[:1]), ends[:-1]])


def at_starts(prefix: PerLayer, ends: Ends) -> PerStage:
    """Return the prefix sums [G + 1] before each stage."""
    return take_at(prefix, _starts(xp.asarray(ends)))


def first_inputs(x: PerLayer, ends: Ends) -> PerStage:
    """Return items per sample that enter each stage; 0 if a cell lacks the stage."""
    starts = _starts(xp.asarray(ends))
    exists = starts < xp.asarray(ends)
    return xp.where(exists, take_at(x, xp.where(exists, starts, 0)), 0)


def largest(values: PerLayer, ends: Ends, chunks: int = 1) -> Cells:
    """Return max_i of the sum over stage G_i."""
    return xp.max(stage_sums(values, ends, chunks), axis=0)


def stage_maxima(values: PerLayer, ends: Ends) -> PerStage:
    """Return the largest value in each stage; 0 if a cell lacks the stage."""
    values, ends = xp.asarray(values), xp.asarray(ends)
    cells = xp.broadcast_shapes(values.shape[1:], ends.shape[1:])
    number = xp.arange(values.shape[0]).reshape(-1, *[1] * len(cells))

    def largest_of(bounds: tuple[AnyArray, AnyArray]) -> AnyArray:
        start, end = bounds
        return xp.max(xp.where((number >= start) & (number < end), values, 0), axis=0)

    # Stage by stage: all at once would take memory for stages x layers x cells.
    maxima: AnyArray = map_leading(largest_of, (_starts(ends), ends))
    return xp.broadcast_to(maxima, ends.shape[:1] + cells)


def passed_on(carried: PerLayer, ends: Ends) -> Cells:
    """Return the most items that a stage sends to the next, max_{i < q} |y_Gi|; 0 for one stage.

    carried: items that cross a cut behind each layer.
    """
    # Nothing follows the network's last layer.
    is_cut = ends < xp.shape(carried)[0]
    return xp.max(xp.where(is_cut, take_at(xp.asarray(carried), ends - 1), 0), axis=0)
