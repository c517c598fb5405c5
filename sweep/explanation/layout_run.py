"""A layout to run: its numbers as stacks need them, and the script that starts it."""

from dataclasses import dataclass

from grids.entries.systems import System
from grids.reading.errors import InputError
from kernels.layouts.transformer import Training, Transformer
from sweep.answers.types.fitting import LaunchFile, LayoutRow
from sweep.explanation.launch import Processes

SCRIPT = "launch.sh"


def refuse(stack: str, *rules: tuple[bool, str, str]) -> None:
    """Raise InputError for the first broken rule.

    rules: whether it is broken, what the stack does not run, and what to change.
    """
    for broken, what, advice in rules:
        if broken:
            raise InputError(f"{stack} does not run {what}", where="launch", advice=advice)


@dataclass(frozen=True)
class LayoutRun:
    """A layout of a network on a machine, and how it trains. precision: the recipe's name."""

    net: Transformer
    row: LayoutRow
    training: Training
    precision: str
    machine: System

    @property
    def pes(self) -> int:
        """All PEs."""
        row = self.row
        return row["tensor"] * row["context"] * row["pipeline"] * row["data"]

    @property
    def stages(self) -> int:
        """p, stages of the pipeline."""
        return self.row["pipeline"]

    @property
    def parts(self) -> int:
        """Parts into which chunks of stages divide the blocks."""
        # Each PE of ZB-V has two chunks, on the way down the V and up again.
        chunks = 2 if self.training.schedule == "zbv" else self.row["chunks"]
        return self.stages * chunks

    @property
    def passes(self) -> int:
        """m, micro-batches of an iteration."""
        return self.training.batch // (self.row["data"] * self.row["micro"])

    @property
    def modules(self) -> list[str]:
        """Names of the recomputed modules."""
        return [name for name in self.row["recompute"].split(",") if name != "none"]

    @property
    def divides_model(self) -> bool:
        """True unless all PEs are replicas."""
        return self.pes > self.row["data"]

    @property
    def zero(self) -> int:
        """The ZeRO stage; 0 if there is a single rank, which divides nothing."""
        return self.row["zero"] if self.row["shard"] > 1 else 0


def write_torchrun(run: LayoutRun, *arguments: str) -> LaunchFile:
    """Write the script of each node, with one flag per line."""
    processes = Processes(run.pes, run.machine.pes_per_node)
    is_short = processes.last < processes.per_node
    notes = [f"# on the last node --nproc-per-node={processes.last}"] if is_short else []
    line = " \\\n  ".join([processes.command, *arguments])
    return {"file": SCRIPT, "text": "\n".join([*notes, line])}


def write_flags(flags: dict[str, object]) -> list[str]:
    """Write one line per flag: True has no value, and None and False have no line."""
    return [
        f"--{name}" if value is True else f"--{name} {value}"
        for name, value in flags.items()
        if value is not None and value is not False
    ]


def refuse_loss(stack: str, run: LayoutRun) -> None:
    """Raise InputError for a loss that keeps fewer logits than the stack does."""
    # Its memory would be too small: the stack runs, but keeps all logits.
    part = run.training.loss_parts > 1 or run.training.logit_bytes == 0
    refuse(stack, (part, "a chunked or fused loss without logits", "take --loss whole"))
