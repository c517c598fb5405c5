"""Launch: processes, their mesh, and what they are fed."""

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


def test_one_rank_has_no_mesh():
    assert launch("serial", 1)["launch"]["mesh"] == {}


LLAMA, MIXTRAL = "llama2_7b", "mixtral_8x7b"
FOUR = "data+tensor+context+pipeline:tensor=2,context=2,pipeline=2,micro=1,zero=1"
FOLDED = (
    "data+tensor+expert+pipeline:tensor=2,expert=4,pipeline=2,micro=1,expert_tensor=1,sequence=on"
)


@pytest.mark.parametrize(("model", "strategy"), [(LLAMA, FOUR), (MIXTRAL, FOLDED)])
def test_the_mesh_of_a_layout_finds_its_replicas(model, strategy):
    """Megatron's order: tensor inside, then context and data, stages outside; experts anew."""
    answer = paradl.explain(model, strategy, 32, 8, dataset="pile", system="dgx-h100")
    fed, degrees = answer["launch"], answer["degrees"]
    names = [name for name in ("tensor", "context", DATA, "pipeline") if name in degrees]
    assert [*fed["mesh"]] == names[::-1]
    for rank in range(32):
        rest, place = rank, {}
        for name in names:
            rest, place[name] = divmod(rest, degrees[name])
        assert eval(fed["sampler"]["rank"], {"rank": rank}) == place[DATA]
