"""Processes of a run: how many on each node, and the command that starts them.

Ranks are numbered as the oracle lays out PEs (docs/machine.md, Network): node by node, with the PEs
of the innermost parallelism adjacent, so that groups stay inside a node if they fit.
"""

import math

from paradl.sweep.answers.types.prediction import LaunchFile, Processes


def describe_processes(pes: int, most: int) -> Processes:
    """Describe the processes of a run, one per PE, on nodes that have room for `most` each."""
    # torchrun takes one number for all nodes; the last node may run fewer.
    per_node = min(pes, most)
    nodes = math.ceil(pes / per_node)
    return {
        "command": f"torchrun --nnodes={nodes} --nproc-per-node={per_node}",
        "world_size": pes,
        "nnodes": nodes,
        "nproc_per_node": per_node,
        "last_node": pes - (nodes - 1) * per_node,
    }


def note_last_node(processes: Processes) -> list[str]:
    """Note how to start the last node if it runs fewer processes than the others."""
    last = processes["last_node"]
    is_short = last < processes["nproc_per_node"]
    return [f"on the last node --nproc-per-node={last}"] if is_short else []


def write_torchrun(pes: int, most: int, *arguments: str) -> LaunchFile:
    """Write the script of each node, with one flag per line."""
    processes = describe_processes(pes, most)
    lines = " \\\n  ".join([processes["command"], *arguments])
    notes = [f"# {note}" for note in note_last_node(processes)]
    return {"file": "launch.sh", "text": "\n".join([*notes, lines])}
