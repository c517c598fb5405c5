"""What software hides of a layout's exchanges, the messages it sends, and their limits."""

from dataclasses import replace
from pathlib import Path

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from short_layouts import read_layout

from paradl.grids.entries.precision import RECIPES
from paradl.grids.entries.systems import TensorPeaks
from paradl.grids.entries.transformer_rates import FITTED, find_efficiency
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.kernels.oracle.block_times import time_exchanges, time_iteration
from paradl.kernels.work.transformer import Training

LLAMA = read_transformer(find("model", "llama3_8b", Path()))
GPT3 = read_transformer(find("model", "gpt3_175b", Path()))
MIXTRAL = read_transformer(find("model", "mixtral_8x7b", Path()))
H100 = Stack(Machine(find("system", "dgx-h100", Path())), "bf16").find_speeds()
# Nothing hides anything, and no other waits.
BARE = replace(
    H100.rates, hidden_gradients=0.0, hidden_weights=0.0, launch=0.0, pause=0.0, straggling=0.0
)


def time_terms(words, pes, net=LLAMA, sequences=8, evaluate=time_iteration, **rates):
    """Seconds per iteration by term. sequences: per replica."""
    layout = read_layout(words, pes)
    training = Training(sequences * int(layout.data[0]), 4096, RECIPES["bf16"])
    terms = evaluate(net, layout, training, replace(BARE, **rates), H100.fabric)
    return {name: float(seconds[0]) for name, seconds in terms.items()}


# Exchanges of tensor parallelism beside the products.


@limit_examples(20)
@given(t=st.sampled_from([2, 4, 8, 16]), share=st.floats(0, 1), bandwidth=st.floats(0.01, 100))
def test_products_hide_three_quarters_of_their_exchange_at_most(t, share, bandwidth):
    fabric = replace(H100.fabric.layers, bandwidth=H100.fabric.layers.bandwidth * bandwidth)
    layout, training = read_layout(f"tp{t} mb1 sp", t), Training(8, 4096, RECIPES["bf16"])
    network = replace(H100.fabric, layers=fabric)
    whole, hidden = (
        time_iteration(LLAMA, layout, training, replace(BARE, hidden_tensor=h), network)
        for h in (0.0, share)
    )
    exchange, products = whole["tensor_exchange"][0], whole["products"][0]
    expected = max(exchange / 4, exchange - share * products)
    assert hidden["tensor_exchange"][0] == pytest.approx(expected)


@pytest.mark.parametrize("words", ["tp1 mb1", "tp8 mb1"])
def test_nothing_is_hidden_without_an_exchange_or_without_divided_sequences(words):
    pes = int(words[2])
    kept, hidden = (time_terms(words, pes, hidden_tensor=share) for share in (0.0, 1.0))
    assert kept == hidden
    assert (kept["tensor_exchange"] > 0) == (pes > 1)


# Exchanges of experts beside another micro-batch.


def test_one_micro_batch_has_no_neighbour_to_hide_the_exchange_of_experts():
    words = "ep8 dp8 mb8"
    kept, hidden = (time_terms(words, 8, MIXTRAL, hidden_experts=share) for share in (0.0, 1.0))
    assert kept == hidden
    assert kept["expert_exchange"] > 0


def test_all_exchanges_of_experts_but_those_of_one_micro_batch_are_hidden():
    for m in (2, 8, 64):
        words = "ep8 dp8 mb1"
        whole = time_terms(words, 8, MIXTRAL, m)["expert_exchange"]
        exposed = time_terms(words, 8, MIXTRAL, m, hidden_experts=1.0)["expert_exchange"]
        assert exposed == pytest.approx(whole / m)


# Messages of states.


def time_states(words, pes, messages, net=LLAMA):
    """Seconds of all exchanges of states, hidden or not."""
    terms = time_terms(words, pes, net, 1, time_exchanges, messages=messages)
    return terms["gradient_exchange"] + terms["weight_gather"]


@pytest.mark.parametrize(
    ("messages", "number"),
    # Llama: two norms and seven matrices a block; embedding and output layer.
    [("one", 1), ("blocks", 32 + 2), ("tensors", 32 * 9 + 2), ("buckets", 201)],
)
def test_each_message_of_states_has_its_start_ups(messages, number):
    """Of a ring: 3.4 us to each PE of a node, 14 us to the next node; there and back (ZeRO 1)."""
    ring = 28 * 3.4e-6 + 3 * 14e-6
    parts = time_states("dp32 mb1 zero1", 32, messages) - time_states("dp32 mb1 zero1", 32, "one")
    assert parts == pytest.approx(2 * (number - 1) * ring, rel=1e-6, abs=1e-12)


def test_a_bucket_has_one_whole_matrix_or_several():
    """GPT-3's have 0.15 to 0.6 billion parameters: buckets of 40 million would cut them."""
    buckets, tensors = (
        time_states("dp32 mb1 zero1", 32, of, GPT3) for of in ("buckets", "tensors")
    )
    assert buckets == tensors > time_states("dp32 mb1 zero1", 32, "blocks", GPT3)


def test_start_ups_of_messages_grow_as_ranks_and_vanish_beside_large_messages():
    nodes = (64, 128, 256)  # nodes of eight, so that rings alone grow
    extra = [
        time_states(f"dp{8 * n} mb1 zero1", 8 * n, "tensors")
        - time_states(f"dp{8 * n} mb1 zero1", 8 * n, "one")
        for n in nodes
    ]
    assert extra[2] / extra[1] == pytest.approx(2, rel=0.01)
    assert extra[1] / extra[0] == pytest.approx(2, rel=0.01)
    wide = replace(LLAMA, kinds=LLAMA.kinds[:1], order=(0,))
    ratios = [
        time_states("dp16 mb1 zero1", 16, "tensors", net)
        / time_states("dp16 mb1 zero1", 16, "one", net)
        for net in (wide, _widen(wide, 1000))
    ]
    assert ratios[0] > ratios[1] > 1
    assert ratios[1] == pytest.approx(1, abs=1e-3)


def _widen(net, factor):
    """The network with matrices of so many times the items."""
    (block,) = net.kinds
    weights = tuple(w._replace(matrix=w.matrix * factor) for w in block.weights)
    return replace(net, kinds=(block._replace(weights=weights),))


@pytest.mark.parametrize("messages", ["one", "blocks", "tensors", "buckets"])
@pytest.mark.parametrize("zero", [0, 1, 3])
def test_a_single_rank_sends_no_states(messages, zero):
    assert time_states(f"tp8 dp1 mb1 zero{zero}", 8, messages) == 0


def test_later_chunks_hide_what_a_chunk_exchanges():
    """One micro-batch hides gradients of a whole stage, those of its group all but a chunk's."""
    share = {"hidden_gradients": 1e-3}
    for v in (1, 2, 4, 8):
        words = f"pp4 v{v} dp2 mb1"
        whole = time_terms(words, 8, sequences=16)
        exposed = time_terms(words, 8, sequences=16, **share)
        names = ("pipeline_bubble", "stage_exchange", "gradient_exchange", "optimizer")
        busy = sum(seconds for name, seconds in whole.items() if name not in names) / 16
        hidden = whole["gradient_exchange"] - exposed["gradient_exchange"]
        assert hidden == pytest.approx(1e-3 * 2 / 3 * busy * (4 - 3 / v))


# Messages between stages.


def test_stages_wait_for_each_message_of_1f1b_and_for_none_of_others():
    """2 (q_p - 1) messages fill and drain a pipeline; those of further micro-batches follow."""

    def sent(words, sequences):
        return time_terms(words, 4, sequences=sequences)["stage_exchange"]

    few, many = (sent("pp4 mb1", sequences) for sequences in (8, 16))
    assert many / few == pytest.approx((3 + 15) / (3 + 7))
    startup = 3.4e-6
    few, many = (sent("pp4 v2 mb1", sequences) for sequences in (8, 16))
    assert many - few == pytest.approx(2 * 8 * startup)


# Power.

A100, GB200, GB300 = (
    find("system", name, Path()) for name in ("dgx-a100", "gb200-nvl72", "gb300-nvl72")
)


def change_board(watts, peak=312.0):
    """A system of other boards [W, TFLOP/s]."""
    peaks = TensorPeaks(bf16=peak * 1e12, amp=peak * 1e12)
    pe = A100.pe.model_copy(update={"watts": watts, "tensor_peaks": peaks})
    return A100.model_copy(update={"pe": pe})


@limit_examples(40)
@given(watts=st.floats(50, 3000), peak=st.floats(50, 5000), factor=st.floats(1, 20))
def test_a_device_with_a_higher_peak_or_more_watts_is_never_slower(watts, peak, factor):
    def reached(watts, peak):
        return peak * find_efficiency(change_board(watts, peak), "bf16")

    assert reached(watts, factor * peak) >= reached(watts, peak)
    assert reached(factor * watts, peak) >= reached(watts, peak)


def test_boards_reach_the_same_share_unless_power_limits_them():
    """Many watts: `reach`. Few: watts over the energy of a FLOP, whatever the peak."""
    assert find_efficiency(change_board(None)) == FITTED["reach"]
    assert find_efficiency(change_board(1e5)) == pytest.approx(FITTED["reach"])
    for peak in (1e4, 1e5):
        reached = peak * find_efficiency(change_board(100.0, peak))
        assert reached == pytest.approx(100 / FITTED["energy"], rel=1e-4)


def test_operands_of_fewer_bits_take_less_energy():
    """2^1.5 less for half of them, 4^1.5 for a quarter."""
    peaks = TensorPeaks(bf16=1e16, fp8=2e16, nvfp4=4e16)
    pe = A100.pe.model_copy(update={"watts": 1.0, "tensor_peaks": peaks})
    system = A100.model_copy(update={"pe": pe})
    wide, *narrow = (find_efficiency(system, name) for name in ("bf16", "fp8", "nvfp4"))
    gains = [share * many / wide for share, many in zip(narrow, (2, 4), strict=True)]
    assert gains == pytest.approx([2**1.5, 4**1.5], rel=1e-3)


def test_power_explains_a_quarter_of_what_gb300_gains_on_gb200():
    """Of the 1.25 that was measured in fp8."""
    ratio = find_efficiency(GB300, "fp8") / find_efficiency(GB200, "fp8")
    assert ratio == pytest.approx(1.06, abs=0.01)
