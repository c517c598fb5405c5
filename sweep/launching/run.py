"""A layout of a network on a machine, as launch lines state it, and what stacks refuse of it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import find_recipe
from paradl.grids.models.architecture import Architecture
from paradl.grids.reading.errors import InputError
from paradl.kernels.machine.rates import SoftwareTraits
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.search.stacks import STACKS, find_zero_stage
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import count_parts, counts_ends
from paradl.kernels.work.transformer import Training, Transformer
from paradl.sweep.configurations.layout_cells import LayoutCell

Refusal = tuple[bool, str, str]  # whether it holds, what does not run, and what to change


@dataclass(frozen=True)
class LayoutRun:
    """A layout of a network on a machine, and how it trains. precision: the recipe's name.

    row: its columns, those with a usual number resolved.
    """

    net: Transformer
    layout: Layouts
    training: Training
    precision: str
    machine: System
    model: Architecture

    @classmethod
    def from_cell(cls, cell: LayoutCell, machine: System, model: Architecture) -> "LayoutRun":
        """Make the run of a cell. model: its network."""
        return cls(cell.net, cell.layout, cell.training, find_recipe(machine), machine, model)

    @cached_property
    def row(self) -> dict[str, int]:
        """Columns of the layout by name."""
        layout = self.layout
        (columns,) = layout.to_names()
        usual = {"expert_tensor": layout.etp, "group": layout.passes, "shard": layout.shards}
        return columns | {name: int(column[0]) for name, column in usual.items()}

    @property
    def traits(self) -> SoftwareTraits:
        """What its software does, as the machine's settings switch it."""
        return self.machine.software_facts.layouts

    @property
    def processes(self) -> tuple[int, int]:
        """The PEs, and those of a node."""
        return int(self.layout.pes[0]), self.machine.pes_per_node

    @property
    def stages(self) -> int:
        """p, stages of the pipeline."""
        return self.row["pipeline"]

    @property
    def parts(self) -> int:
        """Parts into which chunks of stages divide the blocks."""
        return int(count_parts(self.layout.pipeline, self.layout.chunks, self.training)[0])

    @property
    def passes(self) -> int:
        """m, micro-batches of an iteration."""
        return self.training.batch // (self.row["data"] * self.row["micro"])

    @property
    def ends(self) -> int:
        """Number of blocks that the embedding counts as, and the loss: 0 or 1."""
        return int(counts_ends(self.net, np.array(self.parts)))

    @property
    def modules(self) -> list[str]:
        """Names of the recomputed modules."""
        return [name for name, bit in RECOMPUTE.items() if self.row["recompute"] & bit]

    @property
    def zero(self) -> int:
        """The ZeRO stage; 0 if there is a single rank, which divides nothing."""
        return int(find_zero_stage(self.layout)[0])

    @property
    def drops_logits(self) -> Refusal:
        """Whether the loss keeps fewer logits than stacks do, which would need more memory."""
        part = self.training.loss_parts > 1 or self.training.logit_bytes == 0
        return part, "a chunked or fused loss without logits", "take --loss whole"


def _describe_refusals(run: LayoutRun) -> dict[str, tuple[str, str]]:
    """Describe what stacks do not run of a layout, and what to change, by reasons of STACKS."""
    layout, by, blocks = run.layout, run.training.context_by, run.net.blocks
    names = ("tensor", "context", "pipeline", "data", "expert", "chunks", "etp", "passes", "shards")
    t, c, p, d, e, chunks, etp, passes, shards = (int(getattr(layout, name)[0]) for name in names)
    modules = ", ".join(name for name in run.modules if name != "blocks")
    folded = t if etp == 1 else 1
    whole = folded * (shards if run.zero else c)
    even = f"{blocks} blocks in {run.parts} even parts"
    divides = f"take a multiple of {folded * c} that divides {whole}"
    return {
        "zero_with_stages": (f"zero{run.zero} with pp{p}", "take zero1, or pp1"),
        "schedule": (f"the schedule {run.training.schedule}", "take --schedule 1f1b"),
        "full": ("recompute=full in square-root parts", "take recompute=blocks"),
        "blocks_and_modules": ("blocks and modules together", "take recompute=blocks"),
        "modules": (f"recompute={modules}", "take recompute=blocks, or none"),
        "group": (f"group{passes} of interleaved micro-batches", f"take group{p}"),
        "zero1": ("zero1: FSDP divides gradients, too", "take zero2 or zero3"),
        "zero0": ("zero0 beside other parallelism", "take zero2 or zero3"),
        "no_sequence": (f"tp{t} without sp", "add sp"),
        "shard_of_context": (f"shard{shards} with cp{c}", f"take a shard that cp{c} divides"),
        "all_to_all": ("--context all_to_all", "take ring or all_gather"),
        "zb1p": ("the schedule zb1p", "take zbv or 1f1b"),
        "uneven": (even, f"take stages that divide {blocks}"),
        "expert_tensor": (f"etp{etp} with tp{t}", f"take etp1 or etp{t}"),
        "experts": (f"ep{e} over cp{c} and tp{t}", divides),
        "chunks": (f"v{chunks}: interleaved chunks", "take v1"),
        "no_all_to_all": (f"--context {by}", "take all_to_all (Ulysses)"),
        "context_with_stages": (f"cp{c} with pp{p}", "take cp1, or pp1"),
        "some_ranks": (f"shard{shards} of {d * c} ranks here", "leave shard out"),
        "model": ("more than data", "take megatron, or dp alone"),
        "zero_in_shards": (f"zero{run.zero} in shards", "take zero3, or leave shard out"),
    }


def refuse(name: str, *rules: Refusal) -> None:
    """Raise InputError for the first rule that holds. name: the stack's in messages."""
    for broken, what, advice in rules:
        if broken:
            raise InputError(f"{name} does not run {what}", where="launch", advice=advice)


def refuse_run(name: str, stack: str, run: LayoutRun, *more: Refusal) -> None:
    """Raise InputError for the first rule of STACKS[stack], or of `more`, that a run breaks."""
    training = run.training
    keeps = training.keeps_states and training.keeps_activations and not training.document
    what, advice = "frozen weights, documents or offload", "launch it without, and add them by hand"
    refuse("a launch line", (run.net.is_tuned or not keeps, what, advice))
    rules, words = STACKS[stack](run.net, run.layout, training), _describe_refusals(run)
    refuse(name, *((bool(mask.any()), *words[reason]) for reason, mask in rules.items()), *more)
