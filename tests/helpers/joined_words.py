"""Pairs of words for one training run, and the networks that they are said of (joined_runs.py)."""

from dataclasses import dataclass, replace
from typing import Any, Literal

Kind = Literal["layers", "image", "blocks", "experts"]
BLOCKS = ("image", "blocks", "experts")
EVERY = ("layers", *BLOCKS)
PE = 8

# A language model of one's own: 8 blocks, each of two residual steps.
OWN: dict[str, Any] = {
    "name": "own",
    "title": "A small language model",
    "source": "tests",
    "rank": 1,
    "layers": [
        {"embedding": {"vocabulary": 32000, "features": 512}},
        *(
            {"residual": {"name": f"h{block}.{name}", "body": ["rmsnorm", step]}}
            for block in range(8)
            for name, step in (
                ("attention", {"attention": {"heads": 8, "causal": True}}),
                ("mlp", {"gated": {"hidden": 2048, "bias": False}}),
            )
        ),
        "rmsnorm",
        {"logits": {"vocabulary": 32000}},
    ],
}


@dataclass(frozen=True)
class Network:
    """A network on a machine, with the samples of a flush that a replica takes."""

    name: str
    kind: Kind
    batch: int
    system: str
    dataset: str = "pile"


H100, RACK = "dgx-h100:precision=bf16", "gb200-nvl72:precision=bf16"
NETWORKS = (
    Network("alexnet", "layers", 64, RACK, "imagenet"),
    Network("vgg16", "layers", 32, "dgx-h100:precision=amp", "imagenet"),
    Network("resnet50", "layers", 32, "abci", "imagenet"),
    Network("cosmoflow", "layers", 8, "abci", "cosmoflow-128"),
    Network("gnmt", "layers", 32, H100, "wmt16-en-de"),
    Network("vit_b_16", "image", 32, H100, "imagenet"),
    Network("own", "blocks", 8, "abci"),
    Network("t5_11b", "blocks", 8, RACK),
    Network("llama2_7b", "blocks", 8, H100),
    Network("llama3_8b", "blocks", 8, "dgx-h100:precision=amp"),
    Network("gpt3_175b", "blocks", 8, RACK),
    Network("deepseek_v3", "experts", 8, RACK),
    Network("mixtral_8x7b", "experts", 8, H100),
    Network("qwen3_30b_a3b", "experts", 8, RACK),
)


@dataclass(frozen=True)
class Words:
    """One way to say a run: {b} is the flush of a replica, {c} a fourth of it.

    flushes: batches of the network that one flush has. by: what answers (a method of `Runs`).
    """

    strategy: str
    pe: int = PE
    flushes: int = 1
    by: str = "predict"
    parameters: tuple[tuple[str, Any], ...] = ()
    settings: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Pair:
    """Two ways to say one run, and the kinds or names of networks for which both make sense."""

    one: Words
    two: Words
    networks: tuple[str, ...] = EVERY

    def suits(self, net: Network) -> bool:
        """True if the network is one of the pair's."""
        return net.kind in self.networks or net.name in self.networks


def _write(strategy: str, other: str, networks: tuple[str, ...] = EVERY, pe: int = PE) -> Pair:
    """Make a pair of two strategies."""
    return Pair(Words(strategy, pe), Words(other, pe), networks)


def _state(pair: Pair, **changes: Any) -> Pair:
    """Return the pair with its first words changed."""
    return replace(pair, one=replace(pair.one, **changes))


DATA, WHOLE = "data", "data:micro={b}"
PIPE, CUT = "pipeline:segments=4", "data+pipeline:pipeline=4,micro={c}"
OPEN = "data+tensor+pipeline:tensor=1,pipeline=4"
BEST = "data+tensor+pipeline:tensor=best,pipeline=best,micro=best,zero=1"
BEST_GROUP = "data+pipeline:group=best,segments=best"
TWICE = (("accumulate", 2),)
STORED = ("resnet50", "llama2_7b")
# One of each kind, to save time: stages of DeepSeek V3 alone take half a second.
FEW_BLOCKS = ("vit_b_16", "llama2_7b", "mixtral_8x7b")
FEW = ("resnet50", *FEW_BLOCKS)
STAGED = ("layers", *FEW_BLOCKS)
WITH_AMP = (*FEW_BLOCKS, "llama3_8b")
# Layouts of these fit on PE of their machine.
FITTING = ("vit_b_16", "own", "t5_11b", "llama2_7b", "llama3_8b", "qwen3_30b_a3b")

PAIRS = {
    "serial = data on 1 PE": _write("serial", DATA, pe=1),
    "data = pipeline:segments=1 on 1 PE": _write(DATA, "pipeline:segments=1", pe=1),
    "data = data+pipeline:group=1": _write(DATA, "data+pipeline:group=1,segments=1", FEW),
    "data = data:micro=b": _write(DATA, WHOLE),
    "data = tensor=1": _write(DATA, "data+tensor:tensor=1"),
    "data = context=1": _write(DATA, "data+context:context=1", FEW_BLOCKS),
    "data = expert=1": _write(DATA, "data+expert:expert=1", ("experts",)),
    "data:micro=b = tensor=1,micro=b": _write(WHOLE, "data+tensor:tensor=1,micro={b}", FEW),
    "data:micro=b = context=1,micro=b": _write(
        WHOLE, "data+context:context=1,micro={b}", FEW_BLOCKS
    ),
    "data:micro=b = pipeline=1,micro=b": _write(WHOLE, "data+pipeline:pipeline=1,micro={b}", FEW),
    "data:micro=b = expert=1,micro=b": _write(
        WHOLE, "data+expert:expert=1,micro={b}", ("experts",)
    ),
    "data:micro=b = tp1 dp8 mbb": _write(WHOLE, "tp1 dp8 mb{b}"),
    "tensor=2,micro=b = tp2 dp4 mbb": _write(
        "data+tensor:tensor=2,micro={b}", "tp2 dp4 mb{b}", WITH_AMP
    ),
    "pipeline=4,micro=b/4 = pp4 mbb/4": _write(CUT, "tp1 pp4 dp1 mb{c}", WITH_AMP, 4),
    "pipeline = data+pipeline:group=4": _write(PIPE, "data+pipeline:group=4,segments=4", FEW, 4),
    "pipeline = data+pipeline:pipeline=4": _write(
        PIPE, "data+pipeline:pipeline=4,segments=4", FEW, 4
    ),
    "gpipe = pp4 mbb/4": _write(PIPE, "pp4 mb{c} schedule=gpipe", FEW, 4),
    "zero=2 = zero2": _write("data:zero=2,micro={b}", "tp1 dp8 mb{b} zero2", FEW),
    "recompute=full = recompute=full": _write(
        "data:recompute=full,micro={b}", "tp1 dp8 mb{b} recompute=full", FEW
    ),
    "gpipe = pipeline=4,micro=b/4": _write(PIPE, f"{CUT},schedule=gpipe", FEW, 4),
    "1f1b = pipeline=4,micro=b/4": _write(f"{PIPE},schedule=1f1b", CUT, pe=4),
    "zb1p = pipeline=4,micro=b/4": _write(f"{PIPE},schedule=zb1p", f"{CUT},schedule=zb1p", FEW, 4),
    "segments of the run = micro=b/4": _state(
        _write(OPEN, f"{OPEN},micro={{c}}", FEW_BLOCKS, 4), parameters=(("segments", 4),)
    ),
    **{
        f"zero={k} = zero={k},micro=b": _write(f"data:zero={k}", f"data:zero={k},micro={{b}}", of)
        for k, of in ((1, EVERY), (2, FEW), (3, FEW))
    },
    "chunks=1 = no chunks": _write(f"{CUT},chunks=1", CUT, STAGED, 4),
    **{
        f"shard=all = zero={k}": _write(f"data:zero={k},shard={PE}", f"data:zero={k}", of)
        for k, of in ((1, EVERY), (2, FEW), (3, FEW))
    },
    **{
        f"zero={k},shard=1 = data": _write(f"data:zero={k},shard=1", DATA, ("layers",))
        for k in (1, 3)
    },
    "shard=node = shard=8": _write("data:zero=3,shard=node", "data:zero=3,shard=8", ("vgg16",), 16),
    "recompute=none = data": _write("data:recompute=none", DATA, STAGED),
    "zero of the run = zero=1": _state(_write(DATA, "data:zero=1"), parameters=(("zero", 1),)),
    "recompute of the run = recompute=full": _state(
        _write(DATA, "data:recompute=full,micro={b}"), settings=(("recompute", "full"),)
    ),
    "accumulate=2 = a flush of 2 b": Pair(Words(DATA, parameters=TWICE), Words(WHOLE, flushes=2)),
    "cell = data": _state(_write(DATA, DATA, STORED), by="cell"),
    "cell = pipeline": _state(_write(PIPE, PIPE, ("resnet50",), 4), by="cell"),
    "cell = pipeline=4,micro=b/4": _state(_write(CUT, CUT, ("llama2_7b",), 4), by="cell"),
    "row of a sample = data": Pair(Words(DATA, by="sample"), Words(DATA, by="drawn"), STORED),
    "best layout = predict": Pair(Words(BEST, by="best"), Words(BEST, by="winner"), FITTING),
    "best group = predict": Pair(
        Words(BEST_GROUP, by="best"), Words(BEST_GROUP, by="winner"), ("layers", *FITTING)
    ),
}
# One batch in two flushes, and in one: with stages the first takes longer, by a bubble.
BUBBLES = {
    "segments": Pair(
        Words(PIPE, 4, parameters=TWICE), Words("pipeline:segments=8", 4, flushes=2), STAGED
    ),
    "micro": Pair(Words(CUT, 4, parameters=TWICE), Words(CUT, 4, flushes=2), FEW_BLOCKS),
}
