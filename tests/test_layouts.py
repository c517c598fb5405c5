"""Layouts of transformers against the scalar reference, and the papers' own numbers."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference_network
import reference_transformers as scalar
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from reference_alignment import list_used
from reference_transformers_layouts import MARKS, Place, limits
from reference_transformers_layouts import layouts as list_scalar
from reference_transformers_stage import memory, model_flops

from paradl.grids.entries.precision import RECIPES
from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.transformers import read_transformer
from paradl.kernels.machine.network import Network
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.oracle.block_times import count_model_flops
from paradl.kernels.parallelism.alignment import count_level_pes
from paradl.kernels.parallelism.layout import find_marks, find_reasons, find_repeated
from paradl.kernels.search.candidates import multiply
from paradl.kernels.work.block_memory import measure_blocks, measure_memory
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training, Unsharded

LLAMA_70B = read_transformer(find("model", "llama2_70b", Path()))
GPT3 = read_transformer(find("model", "gpt3_175b", Path()))
MODULES = [name for name in RECOMPUTE if name not in ("blocks", "full")]

small = st.sampled_from([1, 2, 4])


def enumerate_layouts(pes, **lists):
    """All layouts of so many PEs, whatever makes sense."""
    usual = {"chunks": (1,), "sequence": (0, 1)}
    layouts = multiply(LLAMA_70B, pes, usual | lists)
    return layouts.list_rows(np.nonzero(np.ones(layouts.shape, bool)))


@st.composite
def networks(draw):
    """A network as the reference has it."""
    heads = draw(st.sampled_from([4, 8, 12]))
    experts = draw(st.sampled_from([4, 0, 8]))
    latent = draw(st.none() | st.builds(scalar.Latent, st.just(64), st.sampled_from([0, 96])))
    head_norms, positions = draw(st.booleans()), draw(st.sampled_from([0, 256]))
    return scalar.Network(
        layers=draw(st.integers(1, 17)),
        hidden=64 * heads,
        heads=heads,
        ffn=draw(st.sampled_from([256, 768])),
        vocabulary=draw(st.integers(100, 3000)),
        sequence=draw(st.sampled_from([64, 256, 36])),
        kv_heads=0 if latent else draw(st.sampled_from([0, 2, 4])),
        # Rows of 60 items are no multiple of 16 bytes: such products go without tensor cores.
        head=draw(st.sampled_from([0, 48, 60, 128])),
        gated=draw(st.booleans()),
        tied=draw(st.booleans()),
        biases=draw(st.booleans()),
        qkv_biases=draw(st.booleans()),
        norm="rmsnorm" if latent or head_norms else draw(st.sampled_from(["layernorm", "rmsnorm"])),
        head_norms=head_norms,
        dropout=draw(st.booleans()),
        positions=positions,
        longest=draw(st.sampled_from([positions, 128])),
        experts=experts,
        top_k=2 if experts else 0,
        expert_ffn=128 if experts else 0,
        shared_ffn=draw(st.sampled_from([0, 128])) if experts else 0,
        every=draw(st.integers(1, 2)),
        dense_first=draw(st.integers(0, 2)),
        latent=latent,
        causal=draw(st.booleans()),
        window=draw(st.sampled_from([0, 100, 200])),
        full_every=draw(st.sampled_from([0, 2])),
    )


@st.composite
def tuned_networks(draw):
    """A network of which some weights are frozen, and sequences of documents."""
    net = draw(networks())
    documents = {"document": draw(st.sampled_from([0, 12, 36]))}
    if draw(st.booleans()):
        frozen = draw(st.integers(0, net.layers - 1))
        return replace(net, frozen=frozen, **documents)
    adapted = draw(st.sampled_from([("attention",), ("mlp",), ("attention", "mlp")]))
    # Of 64 weights in 4 bits a constant of 8 bits, of 256 of these one of 32.
    stored = draw(st.sampled_from([0.0, (4 + (8 + 32 / 256) / 64) / 8, 1.0]))
    rank = draw(st.sampled_from([1, 8]))
    return replace(net, rank=rank, adapted=frozenset(adapted), stored=stored, **documents)


ANY_NETWORK = networks() | tuned_networks()


@st.composite
def trainings(draw):
    """How all layouts of a case train, as the reference's layout says it."""
    return scalar.Layout(
        # Of most numbers few layouts have whole micro-batches, and are compared.
        batch=draw(st.sampled_from([48, 96, 24, 192, 5])),
        precision=draw(st.sampled_from(sorted(scalar.RECIPES))),
        schedule=draw(st.sampled_from(["gpipe", "1f1b", "zb1p", "zbv"])),
        context_by=draw(st.sampled_from(["ring", "all_to_all"])),
        fused_attention=draw(st.booleans()),
        logit_bytes=draw(st.sampled_from([0, 4, 14])),
        loss_parts=draw(st.sampled_from([1, 8])),
        share=draw(st.sampled_from([1.0, 0.25])),
        live=draw(st.sampled_from([0.0, 5e5, 1e12])),
        bucket=draw(st.sampled_from([0.0, 5e5])),
        keeps_stages=draw(st.booleans()),
        offload=draw(st.sampled_from(["none", "none", "states", "activations", "both"])),
    )


@st.composite
def candidates(draw, base):
    """A layout of the reference, which trains as `base` does."""
    chunks = draw(st.sampled_from([1, 2, 3])) if base.schedule == "1f1b" else 1
    modules = draw(st.frozensets(st.sampled_from(MODULES), max_size=3))
    again = draw(st.sampled_from([modules, frozenset({"blocks"}), frozenset({"full"})]))
    return replace(
        base,
        tensor=draw(st.sampled_from([1, 2, 4, 3])),
        context=draw(small),
        pipeline=draw(st.sampled_from([1, 2, 3, 4])),
        data=draw(st.sampled_from([1, 2, 4, 8, 6])),
        expert=draw(st.sampled_from([1, 1, 2, 4])),
        chunks=chunks,
        schedule="interleaved" if chunks > 1 else base.schedule,
        micro=draw(small),
        zero=draw(st.integers(0, 3)),
        recompute=again,
        expert_tensor=draw(st.sampled_from([0, 1, 2])),
        group=draw(st.sampled_from([0, 2, 8])) if chunks > 1 else 0,
        node_shards=draw(st.sampled_from([0, 1, 2])),
        sequence_parallel=draw(st.booleans()),
    )


def build_network(net):
    """The production's network of a reference's, written in layers."""
    blocks = [step for block in range(net.layers) for step in write_block(net, block)]
    words = {"vocabulary": net.vocabulary, "features": net.hidden}
    shares = "words" if net.tied else None
    layers = [
        {"embedding": {"name": "words", **words}},
        *([{"positions": {"length": net.positions}}] if net.positions else []),
        *blocks,
        net.norm,
        {"logits": {"name": "scores", "vocabulary": net.vocabulary, "shares": shares}},
    ]
    longest = {"longest": net.longest} if net.longest else {}
    result = {"name": "net", "title": "net", "source": ("none",), "rank": 1, "layers": layers}
    return read_transformer(Architecture.model_validate(result | longest | write_tuning(net)))


def write_tuning(net):
    if net.frozen >= 0:
        return {"tuning": {"freeze": net.frozen}}
    if not net.rank:
        return {}
    weights = {"weights": "nf4" if net.stored < 1 else "int8"} if net.stored else {}
    targets = "all" if len(net.adapted) > 1 else next(iter(net.adapted))
    return {"tuning": {"lora": net.rank, "targets": targets, **weights}}


def write_block(net, block):
    """The two residual steps of a block."""
    biases = {"bias": net.biases or net.qkv_biases, "output_bias": net.biases}
    is_full = net.full_every and (block + 1) % net.full_every == 0
    reading = {"causal": net.causal, "window": None if is_full else net.window or None}
    attention = {"heads": net.heads, **biases, "rotary": True, **reading}
    attention |= {"kv_heads": net.a_kv, "head_features": net.head_size}
    step = {"attention": attention | {"normalise_heads": net.head_norms}}
    if net.latent:
        ranks = net.latent
        latent = {"heads": net.heads, "rank": ranks.kv_rank, "query_rank": ranks.q_rank or None}
        latent |= {"content": ranks.nope, "rotary": ranks.rope, "value": ranks.value, **reading}
        step = {"latent_attention": latent}
    steps = write_mlp(net, net.ffn, net.biases)
    if net.has_experts(block):
        inside = write_mlp(net, net.expert_ffn)
        routed = [{"experts": {"count": net.experts, "active": net.top_k, "layers": inside}}]
        shared = write_mlp(net, net.shared_ffn) if net.shared_ffn else []
        steps = [{"residual": {"body": routed, "shortcut": shared}}] if shared else routed
    return [
        {"residual": {"name": f"h{block}.{name}", "body": [net.norm, *body]}}
        for name, body in (("attention", [step]), ("mlp", steps))
    ]


def write_mlp(net, width, bias=False):
    if net.gated:
        return [{"gated": {"hidden": width, "bias": bias}}]
    return [
        {"linear": {"features": width, "bias": bias, "divided": "columns"}},
        "gelu",
        {"linear": {"features": net.hidden, "bias": bias, "divided": "rows"}},
    ]


def build_training(net, layout):
    return Training(
        *(
            layout.batch,
            net.sequence,
            RECIPES[layout.precision],
            "1f1b" if layout.schedule == "interleaved" else layout.schedule,
            layout.context_by,
        ),
        fused_attention=layout.fused_attention,
        logit_bytes=layout.logit_bytes,
        loss_parts=layout.loss_parts,
        dropout=net.dropout,
        reserved=1e9,
        unsharded=Unsharded(layout.share, layout.live, layout.bucket, layout.keeps_stages),
        document=net.document,
        keeps_states=layout.offload not in ("states", "both"),
        keeps_activations=layout.offload not in ("activations", "both"),
    )


def build_layouts(layouts):
    rows = (
        vars(layout)
        | {
            "recompute": sum(RECOMPUTE[name] for name in layout.recompute),
            "sequence": layout.sequence_parallel,
            "shard": layout.node_shards,
        }
        for layout in layouts
    )
    return Layouts.from_names(rows)


CASES = trainings().flatmap(
    lambda base: st.tuples(st.just(base), st.lists(candidates(base), min_size=1, max_size=8))
)


@limit_examples(60)
@given(net=ANY_NETWORK, case=CASES)
def test_as_the_scalar_reference(net, case):
    base, scalars = case
    mine, training, layouts = build_network(net), build_training(net, base), build_layouts(scalars)
    flops = count_model_flops(mine, training)
    assert flops == pytest.approx(model_flops(net, base.batch), rel=1e-12)
    reasons = find_reasons(mine, layouts, training)
    marks = find_marks(mine, layouts, training, pes_per_node=2)
    for row, layout in enumerate(scalars):
        result = {name for name, mask in (reasons | marks).items() if mask[row]}
        place = Place(layout.pes, per_node=2)
        assert result == limits(net, layout, place)
    # Memory of what exists, and is not starved of micro-batches.
    kept = [
        row
        for row, layout in enumerate(scalars)
        if not limits(net, layout, Place(layout.pes)) - MARKS
    ]
    if not kept:
        return
    parts, stages = measure_memory(mine, layouts.select(np.array(kept)), training)
    for number, row in enumerate(kept):
        hand = memory(net, scalars[row], reserved=1e9)
        total, stage = hand.pop("total"), hand.pop("stage")
        mine_total = sum(part[number] for part in parts.values())
        assert mine_total == pytest.approx(total, rel=1e-9)
        if stage == stages[number]:  # rounding may decide between two equal stages
            for name, part in parts.items():
                if name != "activations":
                    assert part[number] == pytest.approx(hand.pop(name), rel=1e-9), name
            assert parts["activations"][number] == pytest.approx(sum(hand.values()), rel=1e-9)


@limit_examples(200)
@given(
    data=st.data(),
    spans=st.sampled_from([(4,), (9, 36), (16, 64, 1024), (72, 4608), (72, 576, 9216)]),
    degrees=st.sampled_from([(1, 2, 3, 4), (1, 6, 8, 16), (1, 5, 30, 64, 72, 96)]),
)
def test_pes_of_each_level_are_those_of_the_reference(data, spans, degrees):
    """Whole groups of each domain, where any would be cut, if the machine has domains enough."""
    some = {name: data.draw(st.sampled_from(degrees)) for name in ("data", "pipeline", "expert")}
    some |= {name: data.draw(st.sampled_from((1, 2, 3, 8))) for name in ("tensor", "context")}
    some |= {"zero": data.draw(st.integers(0, 1)), "node_shards": data.draw(st.integers(0, 16))}
    layout = scalar.Layout(**some, expert_tensor=data.draw(st.integers(0, 2)))
    size = data.draw(st.sampled_from([np.inf, 2 * spans[-1], 4 * spans[0]]))
    levels = [(span, 1e-6, 1e9) for span in spans]
    machine = reference_network.Network(pes_per_node=spans[0], levels=levels)
    ones = np.ones(len(spans))
    network = Network(np.array(spans), ones, ones, spans[0], 1, np.inf, 0, 1, 1)
    used = count_level_pes(replace(network, size=size), build_layouts([layout]))
    assert [int(np.ravel(pes)[0]) for pes in used] == list_used(machine, layout, size)


def test_all_layouts_of_llama_70b():
    settings = {"chunks": (1, 2, 4, 5, 10), "micro": (1, 2, 4, 8, 16), "zero": range(4)}
    recompute = (0, RECOMPUTE["core_attn"], RECOMPUTE["blocks"])
    layouts = enumerate_layouts(1024, recompute=recompute, **settings)
    assert len(layouts) == math.comb(13, 3) * 5 * 5 * 3 * 4 * 2 == 171_600
    names = ("none", "core_attn", "blocks")
    # One by one those of fewer PEs: a list by hand of them all takes 3 s.
    few = settings | {"chunks": (1, 2, 5), "micro": (1, 4)}
    mine = enumerate_layouts(64, recompute=recompute, **few)
    hand = build_layouts(list_scalar(64, 64, recompute=names, **few))
    assert len(mine) == math.comb(9, 3) * 3 * 2 * 3 * 4 * 2
    rows = [np.unique(value.to_rows(), axis=0) for value in (mine, hand)]
    assert np.array_equal(rows[0], rows[1])
    # As published: even stages and batches, tensor up to 16, ZeRO-2 and 3 without pipelines.
    training = Training(1024, 4096, RECIPES["bf16"])
    reasons = find_reasons(LLAMA_70B, layouts, training)
    marks = find_marks(LLAMA_70B, layouts, training, pes_per_node=16)
    odd = marks["uneven_stages"] | marks["zero_with_pipeline"] | marks["beyond_node"]
    nothing = (layouts.sequence > 0) & (layouts.tensor == 1)
    nothing |= (layouts.chunks > 1) & (layouts.pipeline == 1)
    valid = layouts.select(~(reasons["batch"] | odd | nothing))
    assert len(valid) == 32_256
    of_first_stage = (valid.tensor, valid.context, valid.recompute, valid.sequence)
    assert len(np.unique(np.stack(of_first_stage), axis=1).T) == 237


@pytest.mark.parametrize("sequence", [0, 1])
def test_activations_of_korthikanti(sequence):
    """Equations 1, 2, 4 and 6, table 2: bytes that a block of GPT-3 keeps."""
    rows = [
        {"tensor": t, "recompute": RECOMPUTE.get(again, 0), "sequence": sequence}
        for t in (1, 8)
        for again in ("none", "core_attn", "blocks")
    ]
    layouts = Layouts.from_names(rows)
    training = Training(1, 2048, RECIPES["bf16"], fused_attention=False, dropout=True)
    kept = measure_blocks(GPT3, layouts, training).kept[0] / (2048 * 12288)
    sigma = 8 if sequence else 1
    whole, eighth = [34 + 80, 34, 2], [10 / sigma + 104 / 8, 10 / sigma + 24 / 8, 2 / sigma]
    assert kept.tolist() == [*whole, *eighth]


def test_states_of_zero():
    """Rajbhandari, figure 1: 7.5 B parameters over 64 PEs, GB a PE."""
    layouts = enumerate_layouts(64, zero=range(4), sequence=(0,))
    layouts = layouts.select(layouts.data == 64)
    parts, _ = measure_memory(LLAMA_70B, layouts, Training(64, 4096, RECIPES["zero"]))
    states = parts["weights"] + parts["gradients"] + parts["states"]
    assert 120 * states / states[0] == pytest.approx([120, 31.4, 16.6, 1.88], rel=3e-3)


@pytest.mark.parametrize(("p", "v"), [(8, 3), (16, 2)])
def test_interleaved_in_flight(p, v):
    """Korthikanti, section 4.2.3: l (1 + (p - 1) / (p v)) blocks on the first stage."""
    layouts = Layouts.from_names({"pipeline": p, "chunks": chunks} for chunks in (1, v))
    parts, stages = measure_memory(GPT3, layouts, Training(8 * p, 2048, RECIPES["bf16"]))
    assert stages.tolist() == [0, 0]
    plain, more = parts["activations"]
    assert more / plain == pytest.approx(1 + (p - 1) / (p * v))


def test_repeated_layouts_are_others_again():
    """Without the settings that divide nothing they are candidates, too, of no more memory."""
    layouts = enumerate_layouts(16, chunks=(1, 2), zero=range(4))
    repeated = layouts.select(find_repeated(layouts))
    plain = replace(
        repeated,
        sequence=np.where(repeated.tensor == 1, 0, repeated.sequence),
        zero=np.where(repeated.data * repeated.context == 1, 0, repeated.zero),
        chunks=np.where(repeated.pipeline == 1, 1, repeated.chunks),
    )
    assert len(repeated)
    kept = {*map(tuple, layouts.select(~find_repeated(layouts)).to_rows().tolist())}
    assert {*map(tuple, plain.to_rows().tolist())} <= kept
    sums = [
        sum(measure_memory(GPT3, value, Training(64, 2048, RECIPES["bf16"]))[0].values())
        for value in (plain, repeated)
    ]
    assert np.all(sums[0] <= sums[1])
