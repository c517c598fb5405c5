"""The scalar reference of Table III by hand.

Two convolutions of 4x4 samples (and one followed by a fully connected layer) on a machine with
round numbers: every expected value is the table's formula with numbers.
"""

import math
from dataclasses import replace
from typing import Any

import pytest
from reference import Layer, Machine, Setup, predict

PLANE = (1, 4, 4)
POINT = (1, 1, 1)
K3 = (1, 3, 3)

CONV1 = Layer("conv1", "conv", 64, 128, 288, 8, 9216, 4, 8, PLANE, PLANE, K3, seconds=3.0)
CONV2 = Layer("conv2", "conv", 128, 64, 288, 4, 9216, 8, 4, PLANE, PLANE, K3, seconds=6.0)
FC = Layer("fc", "fc", 128, 10, 1280, 10, 2560, 128, 10, POINT, POINT, POINT, seconds=6.0)
CONVS = (CONV1, CONV2)

# A ring of 2 PEs: alpha 1 s, beta 1/4 s/B; wider ones: 2 s, 1/2 s/B.
MACHINE = Machine(
    peak_flops=100.0,
    efficiency=0.5,
    memory_capacity=1e9,
    memory_bandwidth=1000.0,
    pes_per_node=2,
    links_per_node=1,
    levels=[(2, 1.0, 4.0), (8, 2.0, 2.0)],
)
SERIAL = Setup("serial", p=1, batch=2, samples=16, segments=2)


def answer(
    strategy: str,
    p: int,
    network: tuple[Layer, ...] = CONVS,
    machine: Machine = MACHINE,
    **options: Any,
) -> dict[str, Any]:
    """Predict the toy; `options` are fields of the setup."""
    return predict(network, machine, replace(SERIAL, strategy=strategy, p=p, **options))


def term(name: str, strategy: str, p: int, **options: Any) -> float:
    """One term of the epoch per iteration."""
    result = answer(strategy, p, **options)
    return float(result["terms"][name] / result["iterations"])


# The table's rows.


def test_serial_row() -> None:
    result = answer("serial", 1)
    assert result["iterations"] == 16 / 2
    assert result["terms"]["forward_backward"] == pytest.approx(8 * 2 * (3 + 6))
    assert result["terms"]["weight_update"] == pytest.approx(8 * 5 * 4 * (288 + 8 + 288 + 4) / 1000)
    assert result["comp_time"] == pytest.approx(8 * 18 + 8 * 11.76)
    assert result["comm_time"] == 0
    assert result["memory"] == 4 * (2 * 2 * (192 + 192) + 2 * 576 + 12)
    assert result["limit"] == set()


def test_data_row() -> None:
    result = answer("data", 4)
    assert (result["replicas"], result["b"], result["global_batch"]) == (4, 2, 8)
    assert result["terms"]["forward_backward"] == pytest.approx(2 * 2 * 9)
    # AR(4, 4 x 576): 2 x 3 (2 + 2304/4 x 1/2)
    assert result["comm_time"] == pytest.approx(2 * 6 * (2 + 288))
    assert result["memory"] == answer("serial", 1)["memory"]


def test_spatial_row() -> None:
    assert term("forward_backward", "spatial", 2) == pytest.approx(2 * 9 / 2)
    assert term("weight_update", "spatial", 2) == pytest.approx(11.76)
    # 4 items high; C = 4, F = 8 in conv1 and the reverse in conv2; messages of 2 x 4 x items
    first, second = 2 * (1 + 8 * 16 / 4), 2 * (1 + 8 * 32 / 4)
    assert term("halo_exchange", "spatial", 2) == pytest.approx(2 * (first + second))
    assert term("gradient_exchange", "spatial", 2) == pytest.approx(2 * (1 + 2304 / 2 / 4))
    assert term("split_gather", "spatial", 2) == 0
    assert answer("spatial", 2)["memory"] == 4 * (2 * 2 * 384 / 2 + 2 * 576 + 12)


def test_spatial_split_ends_before_a_fully_connected_layer() -> None:
    network = (CONV1, FC)
    assert term("forward_backward", "spatial", 2, network=network) == pytest.approx(2 * (3 / 2 + 6))
    assert term("split_gather", "spatial", 2, network=network) == pytest.approx(
        2 * (1 + 1024 / 2 / 4)
    )
    memory = 4 * (4 * (192 / 2 + 138) + 2 * (288 + 1280) + 18)
    assert answer("spatial", 2, network=network)["memory"] == memory


def test_pipeline_row() -> None:
    # Stages conv1 | conv2: FW 1 | 2, BW 2 | 4; S = 2.
    assert term("forward_backward", "pipeline", 2) == pytest.approx(2 * (2 + 4))
    assert term("pipeline_bubble", "pipeline", 2) == pytest.approx(2 * (2 - 1) / 2 * (2 + 4))
    assert term("weight_update", "pipeline", 2) == pytest.approx(5 * 4 * (288 + 8) / 1000)
    transfers = 2 * (2 + 2 - 2) * (1 + 2 / 2 * 4 * 128 / 4)
    assert term("point_to_point", "pipeline", 2) == pytest.approx(transfers)
    assert answer("pipeline", 2)["memory"] == 4 * (4 * 192 + 2 * 288 + 8)


def test_filter_row() -> None:
    assert term("forward_backward", "filter", 2) == pytest.approx(2 * 9 / 2)
    assert term("weight_update", "filter", 2) == pytest.approx(11.76 / 2)
    # conv1 alone (l < G): AG + AR of 2 x 4 x 128 bytes
    collectives = (1 + 1024 / 2 / 4) + 2 * (1 + 1024 / 2 / 4)
    assert term("layer_collectives", "filter", 2) == pytest.approx(collectives)
    assert term("gradient_exchange", "filter", 2) == 0
    assert answer("filter", 2)["memory"] == 4 * (4 * 384 + 576 + 12)


def test_channel_row_leaves_the_first_convolution_whole() -> None:
    assert term("forward_backward", "channel", 2) == pytest.approx(2 * (3 + 6 / 2))
    assert term("weight_update", "channel", 2) == pytest.approx(20 * (296 + 292 / 2) / 1000)
    assert term("layer_collectives", "channel", 2) == 0
    assert answer("channel", 2)["memory"] == 4 * (4 * 384 + 2 * 288 + 288 + 12)


# The column "p2 at most" and the other limits.

TINY = replace(MACHINE, memory_capacity=10799.0)


@pytest.mark.parametrize(
    ("strategy", "p", "options", "limit"),
    [
        ("serial", 1, {"machine": TINY}, {"memory"}),
        ("filter", 4, {}, set()),
        ("filter", 3, {}, {"uneven"}),  # F = 8, 4
        ("filter", 8, {}, {"too_many_pes", "uneven"}),
        ("channel", 8, {}, set()),  # C = 8 of conv2: conv1 is whole
        ("channel", 8, {"network": (CONV1, CONV1)}, {"too_many_pes", "uneven"}),
        ("spatial", 32, {}, {"too_many_pes", "uneven"}),  # 16 outputs a channel
        ("spatial", 2, {"network": (CONV1, FC), "layers": "all"}, set()),  # FC has no rows
        (
            "spatial",
            2,
            {"network": (CONV1, FC), "layers": "all", "conventions": "authors"},
            {"too_many_pes", "uneven"},
        ),
        ("pipeline", 2, {"segments": 4}, {"batch_too_small", "uneven"}),
        ("data", 4, {"scaling": "strong", "batch": 2}, {"batch_too_small", "uneven"}),
        ("data", 8, {"batch": 4}, {"batch_exceeds_dataset"}),
    ],
)
def test_limits_keep_their_times(
    strategy: str, p: int, options: dict[str, Any], limit: set[str]
) -> None:
    result = answer(strategy, p, **options)
    assert result["limit"] == limit
    assert math.isfinite(result["comp_time"] + result["comm_time"] + result["memory"])


@pytest.mark.parametrize(
    ("strategy", "p", "options", "limit"),
    [
        ("serial", 2, {}, "too_many_pes"),
        ("pipeline", 4, {}, "too_many_pes"),  # G = 2
        ("spatial", 2, {"network": (FC,)}, "too_many_pes"),  # no rows
        ("data+filter", 3, {}, "group_does_not_divide"),
        ("data+filter", 4, {"group": 8}, "group_does_not_divide"),
    ],
)
def test_configurations_that_do_not_exist(
    strategy: str, p: int, options: dict[str, Any], limit: str
) -> None:
    result = answer(strategy, p, **options)
    undefined = [result["memory"], result["comp_time"], result["comm_time"]]
    assert all(math.isnan(value) for value in [*undefined, *result["terms"].values()])
    assert result["limit"] == {limit}
