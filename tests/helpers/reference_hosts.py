"""What passes through host memory where PEs of a node do not see each other's: by hand, too.

From docs/machine.md, section Network, alone. A machine without `staging` has none of it.
"""

from collections.abc import Sequence

from reference_network import path
from reference_parts import Layer, Machine, Run, expected_largest, own_part

LARGE = 256 * 2**20  # bytes that pass as fast as any


def passes_hosts(machine: Machine, run: Run) -> bool:
    """Whether gradients do: of weights that all PEs hold, but none of plain data parallelism's."""
    if machine.staging is None:
        return False
    if run.group == "spatial":
        return run.p2 > 1  # a group of one PE is plain data parallelism
    return run.group in ("filter", "channel") and run.p1 == 1 and run.p2 > 1


def exchanged_weights(layers: Sequence[Layer], machine: Machine, run: Run) -> list[float]:
    """The weights of each layer whose gradients a PE exchanges.

    It is its own part of all; a single group that has hosts exchanges what it does not divide.
    """
    if not passes_hosts(machine, run) or run.group == "spatial":
        return [own_part(layer, run).w for layer in layers]
    return [0.0 if layer.divided else layer.w for layer in layers]


def touched_weights(
    layers: Sequence[Layer], machine: Machine, run: Run, stage: Sequence[int]
) -> float:
    """Those of a stage, of sparse tables the rows: all replicas' gathered, or the table reduced.

    An all-gather of rows takes as long as an all-reduce of half of them. PEs of a group that has
    hosts have the same samples, and so the same rows.
    """
    weights = exchanged_weights(layers, machine, run)
    tables = [i for i in stage if layers[i].looked_up]
    samples = run.accumulate * run.b
    rows = sum(layers[i].drawn + samples * layers[i].looked_up for i in tables)
    sent = rows if passes_hosts(machine, run) else run.p1 * rows / 2
    whole = sum(weights[i] for i in stage if i not in tables)
    return whole + min(sum(weights[i] for i in tables), sent)


def beyond_large(machine: Machine, m: float) -> float:
    """Seconds that bytes beyond the first 256 MiB take, once."""
    return max(0.0, m - LARGE) * machine.host_path.beta / machine.large_message


def slow(machine: Machine, m: float) -> float:
    """slow(m): there and back."""
    return 2 * beyond_large(machine, m)


def exchange_seconds(machine: Machine, run: Run, m: float) -> float:
    """Of m bytes of gradients: inside each node, across n of them, and what is large besides."""
    h, n = min(run.p, machine.pes_per_node), max(1.0, run.p / machine.pes_per_node)
    phi = 1.0 if run.phi is None else run.phi
    inside = machine.inside(machine.node_reduce)
    between = path(machine, run.p, run.p, 1, machine.node_reduce)
    within = 2 * (h - 1) * (inside.alpha + m / h * phi * inside.beta)
    across = 2 * (n - 1) * (between.alpha + m / n * phi * between.beta)
    if m == 0:
        return 0.0
    return within + across + slow(machine, m) * slow_part(machine, run)


def slow_part(machine: Machine, run: Run) -> float:
    """v: leaders of a spatial group's nodes exchange what is large, all PEs of any other group."""
    if run.group != "spatial":
        return 1 - 1 / run.p
    n = max(1.0, run.p / machine.pes_per_node)
    return (1 - 1 / n) * slowest_node(machine, run)


def slowest_node(machine: Machine, run: Run) -> float:
    """j: the slowest node's time of what is large, of the mean."""
    return 1 + machine.host_jitter * expected_largest(max(1.0, run.p / machine.pes_per_node))


def packing_seconds(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """Seconds an iteration that PEs pack and unpack gradients; by channel the large part again."""
    if not passes_hosts(machine, run):
        return 0.0
    m = machine.g * touched_weights(layers, machine, run, range(len(layers)))
    packed = 2 * m * machine.host_path.beta / machine.packing
    return packed + slow(machine, m) if run.group == "channel" else packed


def gather_seconds(machine: Machine, run: Run, m: float) -> float:
    """Seconds a pass that PEs share m bytes page by page where a split ends, and send them back."""
    beta = machine.phi_gather * machine.host_path.beta / machine.gather_rate
    return 2 * (1 - 1 / run.p2) * m * beta


def scatter_seconds(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """Seconds a pass that a spatial group's large samples are handed out."""
    if machine.staging is None or run.group != "spatial" or run.p2 == 1:
        return 0.0
    slow_part = beyond_large(machine, run.b * machine.a * layers[0].x)
    return slow_part * slowest_node(machine, run)
