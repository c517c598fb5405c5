"""Launch lines of a layout: what to type for Megatron-LM, torchtitan, DeepSpeed and torchrun.

A stack is a function and a row of STACKS. What it cannot run is refused, never left out.
"""

from collections.abc import Callable

from grids.reading.errors import InputError
from sweep.answers.types.fitting import LaunchFile
from sweep.explanation.layout_deepspeed import write_deepspeed
from sweep.explanation.layout_megatron import write_megatron
from sweep.explanation.layout_run import SCRIPT, LayoutRun, refuse, write_torchrun
from sweep.explanation.layout_torchtitan import write_torchtitan


def write_launch(stack: str, run: LayoutRun) -> list[LaunchFile]:
    """Write the files to start a run. InputError: an unknown stack, or one that cannot run it."""
    if stack not in STACKS:
        raise InputError.unknown("stack", stack, STACKS, where="launch")
    return STACKS[stack](run)


def write_plain(run: LayoutRun) -> list[LaunchFile]:
    """Write a torchrun line for the user's own script, with its DDP or FSDP call as a comment."""
    row, stack = run.row, "torchrun"
    refuse(
        stack,
        (run.divides_model, "more than data", "take megatron, or dp alone"),
        (
            run.zero in (1, 2) and row["shard"] != row["data"],
            f"zero{row['zero']} in shards",
            "take zero3, or leave shard out",
        ),
    )
    wraps = {
        0: "DistributedDataParallel(model)",
        1: "DistributedDataParallel(model), ZeroRedundancyOptimizer(model.parameters(), AdamW)",
        2: "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)",
        3: "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.FULL_SHARD)",
    }
    wrap = wraps[run.zero]
    if run.zero == 3 and row["shard"] < row["data"]:
        mesh = f"({row['data'] // row['shard']}, {row['shard']})"
        wrap = wrap.replace("FULL_SHARD", "HYBRID_SHARD").replace(
            "(model,", f'(model, device_mesh=init_device_mesh("cuda", {mesh}),'
        )
    script = write_torchrun(run, "train.py")
    lines = [
        "# train.py is yours. In it:",
        f"# {wrap}",
        f"# {row['micro']} sequences of {run.training.length} tokens a pass, "
        f"{run.passes} passes an iteration; {run.precision}; recompute {row['recompute']}",
        script["text"],
    ]
    return [{"file": SCRIPT, "text": "\n".join(lines)}]


STACKS: dict[str, Callable[[LayoutRun], list[LaunchFile]]] = {
    "megatron": write_megatron,
    "torchtitan": write_torchtitan,
    "deepspeed": write_deepspeed,
    "torchrun": write_plain,
}
