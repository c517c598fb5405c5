"""Launch: groups of ranks by enumeration."""

from typing import Any

import pytest

import paradl

PER_NODE = 4  # of ABCI


def launch(strategy: str, pe: int, batch: int = 32, **settings: object) -> dict[str, Any]:
    answer: dict[str, Any] = paradl.explain(
        "vgg16", strategy, pe, batch, dataset="imagenet", settings=settings
    )
    return answer


def enumerate_groups(row: dict[str, Any], pe: int) -> list[list[int]]:
    """Each group's ranks, of what is told of all."""
    size, stride = row["size"], row["stride"]
    if stride == 1:
        return [list(range(start, start + size)) for start in range(0, pe, size)]
    return [list(range(start, pe, stride)) for start in range(row["count"])]


@pytest.mark.parametrize("strategy", ["data+filter:group=4", "data+pipeline:group=8"])
def test_each_rank_is_in_one_group_of_each_kind(strategy):
    answer = launch(strategy, 64)
    model, gradient = answer["launch"]["groups"]
    for row in (model, gradient):
        groups = enumerate_groups(row, 64)
        assert len(groups) == row["count"]
        assert sorted(rank for group in groups for rank in group) == list(range(64))
    inside, across = (enumerate_groups(row, 64) for row in (model, gradient))
    # A PE exchanges gradients with its likes: one of each replica.
    assert all(len(set(a) & set(b)) == 1 for a in inside for b in across)
    assert (model["count"], model["size"]) == (answer["replicas"], answer["group"])


@pytest.mark.parametrize(
    ("group", "ranks"),
    [
        (2, "0-1; 2-3; ... 22-23"),
        (3, "0-2; 3-5; ... 21-23"),
        (8, "0-7; 8-15; 16-23"),
    ],
)
def test_groups_have_adjacent_ranks(group, ranks):
    answer = launch(f"data+filter:group={group}", 24)
    assert answer["launch"]["groups"][0]["ranks"] == ranks


def test_rings_of_replicas_take_a_rank_of_each():
    row = launch("data+filter:group=4", 24)["launch"]["groups"][1]
    assert row["ranks"] == "0,4..20; 1,5..21; ... 3,7..23"


def test_a_spatial_group_adds_gradients_up_over_all_ranks():
    model, gradient = launch("data+spatial:group=8", 64)["launch"]["groups"]
    assert model["each"].endswith("1 x 2 x 4 parts (depth, height, width)")
    assert (gradient["ranks"], gradient["size"]) == ("0-63", 64)


def test_the_authors_add_up_inside_groups_first():
    answer = launch("data+spatial:group=8", 64, oracle="paper", allreduce="hierarchical")
    _, inside, across = answer["launch"]["groups"]
    assert (inside["size"], inside["stride"]) == (8, 1)
    assert (across["size"], across["stride"]) == (8, 8)


@pytest.mark.parametrize("strategy", ["data", "filter", "data+pipeline:group=4,segments=8"])
def test_what_ranks_are_fed_is_the_global_batch(strategy):
    answer = paradl.explain(
        "vgg16", strategy, 16, 32, dataset="imagenet", parameters={"accumulate": 3}
    )
    fed = answer["launch"]
    replicas = fed["sampler"]["num_replicas"]
    assert replicas * fed["micro_batch"] * fed["micro_batches"] == answer["global_batch"]
    mesh = fed["mesh"].values()
    product = 1
    for size in mesh:
        product *= size
    assert product == fed["world_size"] == 16


@pytest.mark.parametrize("pe", [1, 3, 4, 9])
def test_nodes_have_all_ranks(pe):
    fed = launch("data", pe)["launch"]
    assert (fed["nnodes"] - 1) * fed["nproc_per_node"] + fed["last_node"] == pe
    assert fed["last_node"] <= fed["nproc_per_node"] <= PER_NODE
    assert fed["command"].startswith(f"torchrun --nnodes={fed['nnodes']} ")


def test_one_rank_has_no_groups():
    fed = launch("serial", 1)["launch"]
    assert fed["groups"] == []
    assert fed["mesh"] == {}
