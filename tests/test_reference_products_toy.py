"""The scalar reference of products of parallelisms by hand.

The toy in two stages, a convolution with its activation and a fully connected layer: see
test_reference_machine.py for their times, and for its nodes of 2 PEs.
"""

from dataclasses import replace

import pytest
from machine_toys import MACHINE as TOY_MACHINE
from machine_toys import TOY
from reference_parts import Run
from reference_products import memory, terms
from reference_products_exchange import gradient_ring
from reference_products_parts import Product

MACHINE = replace(TOY_MACHINE, layer_overhead=0.0)
PIPED = Run(group="pipeline", p2=2, ends=(2, 3), segments=4, b=2.0, samples=16.0)
FIRST, NONE = (True, False, False), (False, False, False)
PIPELINE_OF_HALVES = Product(run=PIPED, in_space=FIRST, in_parts=NONE, factors=(1, 2, 1))
PIPELINE_OF_FILTERS = Product(run=PIPED, in_space=NONE, in_parts=FIRST, parts=2)


def assert_terms(product: Product, **expected: float) -> None:
    """The product has these terms and no others."""
    seconds = terms(TOY, MACHINE, product)
    assert seconds == pytest.approx(dict.fromkeys(seconds, 0.0) | expected)


def test_stages_of_halves_by_hand() -> None:
    # 5 steps of half a sample. Halos of 8 and 16 items in a node; the gather of 64 items; 32 items
    # from stage to stage, of two PEs at once, which have 1 B/s each. 640 weights of two PEs.
    assert_terms(
        PIPELINE_OF_HALVES,
        forward_backward=2 * 153.6,
        pipeline_bubble=2 * 153.6 / 4,
        pass_overhead=5 * 7.8,
        weight_update=13.0,
        halo_exchange=5 * (2 * (1 + 16 / 4) + 2 * (1 + 32 / 4)),
        split_gather=5 * 2 * (1 + 128 / 2 / 4),
        point_to_point=8 * (2 + 64 / 1),
        gradient_exchange=2 * (1 + 1280 / 2 / 4),
    )


def test_stages_of_filters_by_hand() -> None:
    # All 64 items pass from stage to stage, of both PEs.
    assert_terms(
        PIPELINE_OF_FILTERS,
        forward_backward=2 * 153.6,
        pipeline_bubble=2 * 153.6 / 4,
        pass_overhead=5 * 7.8,
        weight_update=13.0,
        layer_collectives=5 * 2 * (1 + 128 / 2 / 4),
        point_to_point=8 * (2 + 128 / 1),
    )
    # conv and relu: 200 bytes of masks and tensors kept, as without filters; fc has most states.
    assert memory(TOY, MACHINE, PIPELINE_OF_FILTERS)["states"] == 7800


def test_halves_of_filters_by_hand() -> None:
    """Rows and filters of a convolution: a quarter of it; halos are of its own 2 filters."""
    product = Product(
        run=replace(PIPED, p2=1), in_space=FIRST, in_parts=FIRST, factors=(1, 2, 1), parts=2
    )
    # Two samples; rows are two PEs apart, and two PEs send at once; a row's 4 x 8 items are
    # gathered in a node. Gradients: 2 x (36 + 640) bytes in rings of two PEs.
    gather = min(1 + 512 / 2 / 1 + 1, 2 + 512 / 2 / 1)
    assert_terms(
        product,
        forward_backward=2 * (138.24 / 4 + 2.56 / 2 + 153.6),
        pass_overhead=0.48 + 7.8,
        weight_update=20 * (36 + 4 + 650) / 1000,
        halo_exchange=2 * (2 + 64 / 1) + 2 * (2 + 64 / 1),
        split_gather=2 * gather,
        layer_collectives=2 * (1 + 256 / 2 / 4),
        gradient_exchange=2 * (2 + 1352 / 2 / 1),
    )


# Nodes of 4 PEs with 2 links, racks of 4 nodes.
RACKS = replace(
    MACHINE,
    pes_per_node=4,
    links_per_node=2,
    levels=[(4, 1.0, 16.0), (16, 2.0, 4.0), (64, 4.0, 2.0)],
)


@pytest.mark.parametrize(
    ("replicas", "stages", "rows", "parts", "speed", "shared", "rail"),
    [
        # A node has a stage: one ring leaves it, and four a rack. Rails are of each PE.
        (4, 4, 4, 1, 4, 4, 1),
        # A node has two parts of filters of one stage, a rack of two replicas four rings.
        (8, 2, 2, 2, 2, 2, 1),
        # A node has half a stage: two parts of filters.
        (4, 2, 4, 2, 2, 2, 1),
        # A node has two stages of two PEs.
        (4, 8, 2, 1, 2, 2, 1),
        # A node has all stages, twice: two rings.
        (32, 2, 1, 1, 2, 2, 1),
        # Rows of one stage: one ring of all.
        (4, 1, 16, 1, 4, 4, 1),
        (4, 16, 1, 1, 1, 1, 1),
    ],
)
def test_rings_of_gradients(
    replicas: int, stages: int, rows: int, parts: int, speed: float, shared: int, rail: float
) -> None:
    run = Run(group="pipeline", p1=replicas, p2=stages)
    product = Product(run=run, in_space=(), in_parts=(), factors=(1, rows, 1), parts=parts)
    assert product.p == 64
    over = gradient_ring(RACKS, product)
    assert over.way == pytest.approx((4, 1 / speed))
    assert (over.q, over.h) == (replicas * rows, shared)
    assert over.rail == pytest.approx((4, 1 / rail))
