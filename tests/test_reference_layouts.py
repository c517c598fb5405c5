"""Layouts of networks without blocks: the oracle agrees with the scalar reference.

HSDP, interleaved chunks of layers, and cheap layers that run again in the backward pass.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from product_cases import Case, Degrees, cases
from product_questions import make_machine, make_product, make_rows, make_table
from reference_parts import Layer
from reference_products import epoch, hidden_time, largest_batch, limits, memory
from reference_products_parts import cut_product

import paradl
from paradl.grids.models.layers import LayerTable

TOLERANCE = 1e-9
MARKS = {"uneven", "batch_exceeds_dataset"}  # which forbid nothing
# Chen et al. 2016, section 3: batch normalisation, activation function and pooling.
CHEAP = ("norm", "relu", "gelu", "maxpool", "dropout")
READS_INPUT, READS_OUTPUT = ("conv", "fc", "norm", "gelu"), ("relu",)
REMEMBERED = {"maxpool": 8, "dropout": 1}  # bytes of an output item
SAMPLE = -1


@dataclass(frozen=True)
class Words:
    """What a layout says beside its degrees."""

    zero: int
    shard: int
    chunks: int
    again: str

    def write(self, case: Case) -> str:
        """Write the layout as users do, with a segment's samples."""
        degrees, cut = case.degrees, case.degrees.pipeline
        said: dict[str, object] = {"pipeline": cut, "chunks": self.chunks} if cut else {}
        said["micro"] = case.batch // case.segments if cut else case.batch
        said |= {"recompute": self.again, "zero": self.zero}
        said |= {"shard": self.shard} if self.zero else {}
        said |= {"schedule": case.schedule} if cut else {}
        base = "data+pipeline" if cut else "data"
        assert degrees.replicas
        return f"{base}:{','.join(f'{name}={value}' for name, value in said.items())}"


words = st.builds(
    Words,
    zero=st.sampled_from((0, 1, 2, 3)),
    shard=st.sampled_from((0, 1, 2, 3, 4)),
    chunks=st.sampled_from((1, 2, 3)),
    again=st.sampled_from(("layernorm", "none", "full")),
)
REPLICAS = st.sampled_from((6, 4, 1, 8))
degrees = st.one_of(
    st.builds(Degrees, replicas=REPLICAS),
    st.builds(Degrees, replicas=REPLICAS, pipeline=st.sampled_from((2, 3))),
)


@st.composite
def deeper(draw: st.DrawFn, degrees: st.SearchStrategy[Degrees]) -> Case:
    """Draw a case with more cheap layers in a row, and micro-batches that most stages divide."""
    case = draw(cases(degrees))
    chains = st.lists(st.sampled_from(("batchnorm", "relu", "gelu", "dropout")), max_size=3)
    steps = [
        [*draw(chains), step] if "maxpool" in step else [step] for step in case.model["layers"]
    ]
    model = case.model | {"layers": [step for some in steps for step in some]}
    segments = draw(st.sampled_from((1, 1, 1, 2, 0.5))) * max(1, case.degrees.pipeline)
    segments = max(1, int(segments)) if case.degrees.pipeline else 1
    return replace(case, model=model, segments=segments, batch=draw(st.integers(1, 9)) * segments)


def drop_cheap(rows: list[Layer], table: LayerTable) -> list[Layer]:
    """The layers where the backward pass keeps no output that is cheap to compute again."""
    names, inputs = table.kinds, table.inputs
    readers = [[m for m in range(len(rows)) if n in inputs[m]] for n in range(len(rows))]

    def is_kept(n: int) -> bool:
        if n == SAMPLE:
            return any(SAMPLE in inputs[m] and names[m] in READS_INPUT for m in range(len(rows)))
        return names[n] in READS_OUTPUT or any(names[m] in READS_INPUT for m in readers[n])

    def can_follow(n: int) -> bool:
        """Whether it is cheap, and follows from what is kept."""
        return (
            n != SAMPLE
            and names[n] in CHEAP
            and all(is_kept(m) or can_follow(m) for m in inputs[n])
        )

    def runs_again(n: int) -> bool:
        of_use = is_kept(n) or names[n] in REMEMBERED
        return can_follow(n) and (of_use or any(runs_again(m) for m in readers[n]))

    def own(n: int) -> tuple[float, float]:
        items = rows[n].y if is_kept(n) else 0.0
        return items, REMEMBERED.get(names[n], 0) * rows[n].y

    def before(n: int) -> tuple[float, float]:
        """What is there once more when a layer runs backward: items, and bytes of indices."""
        again = n != SAMPLE and runs_again(n)
        there = [own(n)] if again else []
        if again or names[n] in READS_INPUT:
            there += [before(m) for m in {*inputs[n]} if m != SAMPLE and runs_again(m)]
        return sum(items for items, _ in there), sum(size for _, size in there)

    dropped = []
    for n, row in enumerate(rows):
        items, size = own(n) if runs_again(n) else (0.0, 0.0)
        again_items, again_bytes = before(n)
        dropped.append(
            replace(
                row,
                kept_items=row.kept_items - items,
                kept_bytes=row.kept_bytes - size,
                again=runs_again(n),
                again_items=again_items,
                again_bytes=again_bytes,
            )
        )
    return dropped


def is_divisible(case: Case, said: Words) -> bool:
    """Whether shards divide replicas, and stages the micro-batches of chunks."""
    shards = not (said.zero and said.shard and case.degrees.replicas % said.shard)
    stages = max(1, case.degrees.pipeline)
    interleaved = case.schedule == "1f1b" and case.segments % stages == 0
    return shards and (said.chunks == 1 or not case.degrees.pipeline or interleaved)


@limit_examples(120)
@given(case=deeper(degrees), said=words)
def test_every_number_agrees(case: Case, said: Words) -> None:
    cut = case.degrees.pipeline
    # Other schedules interleave nothing.
    schedule: Any = "1f1b" if said.chunks == 2 else case.schedule
    case = replace(case, zero=said.zero, schedule=schedule)
    asked: dict[str, Any] = case.asked | {"strategy": said.write(case)}
    answer = paradl.predict(**asked)
    table = make_table(case)
    if not is_divisible(case, said):
        assert answer["memory"] is None
        assert "does_not_divide" in answer["limit"]
        return
    assert "does_not_divide" not in answer["limit"]
    parts = max(1, cut) * (said.chunks if cut else 1)
    if parts > len(table):  # no such stages
        assert answer["memory"] is None
        return
    rows, machine = make_rows(table), make_machine(case)
    if said.again == "layernorm":
        rows = drop_cheap(rows, table)
    case = replace(
        case, settings=case.settings | {"recompute": "full" if said.again == "full" else "none"}
    )
    product = make_product(case)
    shard = said.shard if said.zero else 0
    run = replace(product.run, shard=shard, chunks=said.chunks if cut else 1)
    product = cut_product(rows, machine, replace(product, run=run))
    expected = epoch(rows, machine, product)
    expected["hidden_communication"] = hidden_time(rows, machine, product)
    assert answer["terms"] == pytest.approx(expected, rel=TOLERANCE, abs=1e-300)
    assert answer["memory"] == pytest.approx(memory(rows, machine, product)["total"], rel=TOLERANCE)
    assert answer["largest_batch"] == largest_batch(rows, machine, product)
    assert set(answer["limit"]) - MARKS == limits(rows, machine, product)


def test_the_start_ups_of_further_chunks_are_not_hidden() -> None:
    """2 (q - 1) messages fill and drain; of 2 (v S - 1) others 2 S (v - 1) start-ups are exposed.

    Computing is slow enough to hide all else.
    """
    seconds = {}
    for chunks in (1, 2, 3):
        answer = paradl.predict(
            "vgg16",
            f"data+pipeline:pipeline=2,chunks={chunks},micro=4",
            2,
            16,
            system="dgx-h100",
            dataset="imagenet",
            parameters={"overlap": 1, "efficiency": 0.01, "intra_bandwidth": "1e30 B/s"},
        )
        seconds[chunks] = answer["terms"]["point_to_point"] / answer["iterations"]
        alpha = answer["parameters"]["group_latency"]
    assert list(seconds.values()) == pytest.approx(
        [2 * alpha, (2 + 2 * 4) * alpha, (2 + 2 * 4 * 2) * alpha]
    )
