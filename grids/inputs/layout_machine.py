"""A machine in the form that layouts take: rates of a PE, the network, bytes per item."""

from dataclasses import replace

import numpy as np

from paradl.grids.entries.software import LayoutFacts, Loss
from paradl.grids.entries.transformer_rates import read_facts
from paradl.grids.inputs.machine import Machine, build_network, build_pe, build_software
from paradl.grids.inputs.values import RowValues, Values
from paradl.kernels.machine.rates import Rates, find_rates
from paradl.kernels.machine.reached import Fabric
from paradl.kernels.work.transformer import Training

NOTHING = RowValues({})  # no parameter is set
LOSS_PARTS = 8  # of a chunked loss, as torchtune has it
# Bytes per logit of PyTorch's log_softmax: the output, which it keeps, and its gradient. The item
# of the recipe and, if that has fewer than 4 bytes, its copy in fp32 come on top.
PLAIN_LOSS = 4 + 4


def read_rates(
    machine: Machine,
    precision: str,
    values: Values = NOTHING,
    software: LayoutFacts | None = None,
) -> Rates:
    """Return the rates of PEs, columns [machines] where these differ.

    precision: a recipe. values: parameters that are set. software: other than the system's.
    InputError: a peak is not stated.
    """
    facts = read_facts(machine.system, precision, software)
    pe = replace(
        build_pe(machine, values, "machine"),
        peak_flops=values.get("peak_flops", facts.peaks.products),
    )
    rates = find_rates(pe, build_software(machine, values, "machine"), facts)
    columns = {name: np.asarray(value) for name, value in vars(rates).items()}
    single = {name: column.item() for name, column in columns.items() if column.size == 1}
    return replace(rates, **single)


def read_fabric(machine: Machine, values: Values = NOTHING) -> Fabric:
    """Return the network between PEs; of several machines levels are [level, machines]."""
    depth = len(machine.system.levels)
    network = build_network(machine, values, "machine", depth)
    return Fabric.from_network(network, build_software(machine, values, "machine"))


def find_reserved(machine: Machine) -> float:
    """Return memory of a PE that holds no tensor [B], as in the machine oracle."""
    return float(machine.look_up("reserved", NOTHING))


def keep_logits(training: Training, loss: Loss) -> Training:
    """Return the training with what a loss keeps of logits."""
    item = training.recipe.item
    plain = item + 4 * (item < 4) + PLAIN_LOSS
    return replace(
        training,
        logit_bytes={"fused": 0, "plain": plain}.get(loss, 4),
        loss_parts=LOSS_PARTS if loss == "chunked" else 1,
    )
