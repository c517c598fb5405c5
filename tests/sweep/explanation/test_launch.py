"""Launch: groups of ranks by enumeration."""

from typing import Any

import pytest

import paradl
from paradl.kernels.names.parallelisms import DATA

PER_NODE = 4  # of ABCI


def launch(strategy: str, pe: int, batch: int = 32, **settings: object) -> dict[str, Any]:
    answer: dict[str, Any] = paradl.explain(
        "vgg16", strategy, pe, batch, dataset="imagenet", system="abci", settings=settings
    )
    return answer


def enumerate_groups(row: dict[str, Any], pe: int) -> list[list[int]]:
    """Each group's ranks, of what is told of all: `stride` groups interleave."""
    stride, block = row["stride"], row["size"] * row["stride"]
    starts = [first + n for first in range(0, pe, block) for n in range(stride)]
    return [list(range(start, start + block, stride)) for start in starts]


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
        "vgg16", strategy, 16, 32, dataset="imagenet", system="abci", parameters={"accumulate": 3}
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


LLAMA, MIXTRAL = "llama2_7b", "mixtral_8x7b"
FOUR = "data+tensor+context+pipeline:tensor=2,context=2,pipeline=2,micro=1,zero=1"
FOLDED = (
    "data+tensor+expert+pipeline:tensor=2,expert=4,pipeline=2,micro=1,expert_tensor=1,sequence=on"
)


@pytest.mark.parametrize(("model", "strategy"), [(LLAMA, FOUR), (MIXTRAL, FOLDED)])
def test_groups_of_a_layout_differ_in_what_they_are_of(model, strategy):
    """Megatron's order: tensor inside, then context and data, stages outside; experts anew."""
    answer = paradl.explain(model, strategy, 32, 8, dataset="pile", system="dgx-h100")
    fed, degrees = answer["launch"], answer["degrees"]
    names = [name for name in ("tensor", "context", DATA, "pipeline") if name in degrees]
    assert [*fed["mesh"]] == names[::-1]
    places = []
    for rank in range(32):
        rest, place = rank, {}
        for name in names:
            rest, place[name] = divmod(rest, degrees[name])
        places.append(place | {"expert": rank % degrees.get("expert", 1)})
    weights, *experts = (row for row in fed["groups"] if row["of"] == "gradient")
    rows = {row["of"]: {row["of"]} for row in fed["groups"] if row["of"] in names}
    for of, differ in (*rows.items(), ("gradient", {DATA, "context"})):
        row = weights if of == "gradient" else next(r for r in fed["groups"] if r["of"] == of)
        for group in enumerate_groups(row, 32):
            for name in names:
                held = {places[rank][name] for rank in group}
                assert len(held) == (degrees[name] if name in differ else 1)
    for row in experts:  # each has the same experts of its stage
        for group in enumerate_groups(row, 32):
            assert len({(places[n]["expert"], places[n]["pipeline"]) for n in group}) == 1
    replicas = {eval(fed["sampler"]["rank"], {"rank": n}) - places[n][DATA] for n in range(32)}
    assert replicas == {0}
    assert weights["each"].endswith("shared by ZeRO 1") == ("zero" in strategy)


def test_a_stage_has_neighbours_for_what_divides_its_layers():
    stages = launch("data+filter+pipeline:filter=2,pipeline=2", 8)["launch"]
    assert [row["of"] for row in stages["groups"]] == ["filter", "pipeline", "gradient"]
    assert [row["stride"] for row in stages["groups"]] == [1, 2, 4]
