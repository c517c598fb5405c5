"""A network's layers as a transformer: its blocks, the weights of each, and what each keeps.

All of it follows from the layers: parameters are theirs, and what the backward pass reads depends
on their kinds (grids/models/kinds.py) and roles (grids/models/tensors.py). A block is a run of
layers with one name before the first dot (`h0.attn`, `h0.mlp`), or of one turn of a `repeat`
(`repeat1.2.attn`), in which residual steps end. Layers between two blocks belong to the second one.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby, pairwise
from math import inf

from paradl.grids.entries.datasets import Dataset
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.gradients import Gradients
from paradl.grids.models.kinds import (
    KINDS,
    Activation,
    CurvedActivation,
    LayerKind,
    Normalisation,
    Product,
)
from paradl.grids.models.layers import SAMPLE, LayerTable
from paradl.grids.models.tensors import Reading
from paradl.grids.models.tuning import STORED
from paradl.grids.reading.errors import InputError, ShapeError
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.work.transformer import AttentionProducts, Block, Tensor, Transformer, Weights

# Modules whose recomputation computes all of a block again, except for its input.
BLOCKS = RECOMPUTE["blocks"] | RECOMPUTE["full"]
# Kinds of layers that compute products in blocks: of two tensors, or with weights.
OF_TENSORS = ("matmul", "scan")
MATRICES = ("linear", *OF_TENSORS)
# Of additive attention, whose scores are no product of queries and keys.
ONE_HEAD = Reading(1, 1)


@lru_cache(maxsize=256)  # a network without blocks takes 1 ms of CPU each time
def find_transformer(model: Architecture, datasets: tuple[Dataset, ...]) -> Transformer | None:
    """Return the blocks of a network, as of the first data set that it takes; None without any."""
    for samples in datasets:
        with suppress(ShapeError):
            model.table(samples)  # kept, and needed by every question
            with suppress(*() if model.tuning else (InputError,)):
                return read_transformer(model, samples)
            return None
    return None


def cut_text(model: Architecture, samples: Dataset) -> Dataset:
    """Return a text cut into sequences no longer than a transformer takes; others as they are."""
    if samples.tokens is None:
        return samples
    longest = model.longest or 0
    if not longest:
        with suppress(InputError):
            longest = read_transformer(model).longest
    if not 0 < longest < samples.shape[1]:
        return samples
    name = samples.name.partition(":")[0]
    return samples.model_copy(update={"name": name}).with_settings({"length": str(longest)})


def find_longest(model: Architecture) -> float | None:
    """Return the longest sequence that a network of blocks can read; None if it reads no text."""
    if model.rank != 1:
        return None
    with suppress(*() if model.tuning else (InputError,)):
        return read_transformer(model).longest or inf
    return None


def read_transformer(model: Architecture, samples: Dataset | None = None) -> Transformer:
    """Return the blocks of a network. samples: the data set that it takes, unless it reads text.

    InputError: it has no blocks, or no heads to divide.
    """
    return find_blocks(model, samples).transformer


def find_blocks(model: Architecture, samples: Dataset | None = None) -> "_Network":
    """Find the layers of each block; arguments and errors as of `read_transformer`."""
    shape, targets = (samples.shape, samples.targets) if samples else ((1, 1), None)
    if model.rank != len(shape) - 1:
        raise _describe_other(model)
    # Of one token: what a longer sequence keeps is in proportion, but for scores.
    shape = (shape[0], 1) if model.rank == 1 else shape
    try:
        network = _read_network(model, shape, targets)
    except ShapeError as error:
        # One token, of text without targets: networks of other sequences do not take it.
        raise _describe_other(model) if samples is None else InputError(str(error)) from error
    if not network.blocks or not network.list_parts("heads") or network.has_other_products:
        raise _describe_other(model)
    return network


@lru_cache(maxsize=64)  # a question reads a network several times: llama3_70b takes 70 ms of CPU
def _read_network(model: Architecture, shape: tuple[int, ...], targets: int | None) -> "_Network":
    return _Network(model, model.layers_for(shape, targets))


def _describe_other(model: Architecture) -> InputError:
    return InputError(
        f"model {model.name} has no blocks of attention that a layout divides",
        advice="take a transformer of the catalogue, a config.json of Hugging Face, or layers of "
        "your own with attention in residual steps; 'data:zero=3' shards any network",
    )


@dataclass(frozen=True)
class Share:
    """How an output is divided (a name of DIVISORS), and the most parts over tensor ranks."""

    divided: str = "sequence"
    parts: int = 0


def _passes_on(kind: LayerKind) -> bool:
    """True if a layer counts as part of the module before it."""
    acts = isinstance(kind, Activation | CurvedActivation | Product) and kind.name != "lora_sum"
    return acts or kind.name == "rotary"


class _Network:
    """The layers of a network, as blocks see them."""

    def __init__(self, model: Architecture, table: LayerTable) -> None:
        self.model, self.table, self.roles = model, table, table.roles
        self.kinds: list[LayerKind] = [KINDS[kind] for kind in table.kinds]
        self.blocks = [*self._list_blocks()]
        self.gradients = Gradients(table, self.blocks, model.tuning)

    @cached_property
    def transformer(self) -> Transformer:
        """The network's blocks, those that are alike once."""
        first, last = self.blocks[0][0], self.blocks[-1][1]
        blocks = [self._read_block(*block) for block in self.blocks]
        kinds = tuple(dict.fromkeys(blocks))
        table = next((role.parts for role in self.roles if role.of == "vocabulary"), 0)
        # The most positions that the network has vectors for; 0: any.
        rows = (row for row in range(first) if self.kinds[row].name == "positions")
        vectors = max((int(self.table.w[row]) // self.hidden for row in rows), default=0)
        scores = [
            row
            for row, role in enumerate(self.roles)
            if role.of == "vocabulary" and role.divided == "columns"
        ]
        return Transformer(
            hidden=self.hidden,
            vocabulary=table,
            kinds=kinds,
            order=tuple(map(kinds.index, blocks)),
            front=self._read_block(0, 0, first),
            back=self._read_block(last, last, len(self.table)),
            parameters=self.table.parameters,
            heads=self.list_parts("heads"),
            # Without numbers of their own, keys and values have a head for each of the queries.
            kv_heads=self.list_parts("kv_heads") or self.list_parts("heads"),
            ffn=self.list_parts("ffn"),
            expert_ffn=self.list_parts("ffn", of_experts=True),
            experts=tuple(sorted({role.experts for role in self.roles} - {0})),
            # A last matrix without weights of its own is the table of words.
            ties=[self.table.w[row] > 0 for row in scores] == [False],
            longest=self.model.longest or vectors,
            length=self.positions if self.model.rank > 1 else 0,
            memory=next(map(self._make_tensor, self._memory), None),
            is_tuned=self.model.tuning is not None,
            scored=max(map(self.gradients.share_products, scores), default=1.0),
        )

    def list_parts(self, of: str, of_experts: bool = False) -> tuple[int, ...]:
        """List the numbers of heads, ... of the network's matrices."""
        roles = [role for role in self.roles if role.of == of]
        return tuple(sorted({role.parts for role in roles if (role.experts > 0) == of_experts}))

    def _list_blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the first row of each block, and the row behind its last."""
        end = None
        numbers = range(len(self.kinds))
        for _, group in groupby(numbers, lambda row: self._name_block(row)):
            rows = [*group]
            if any(self.kinds[row].name == "add" for row in rows):
                yield rows[0] if end is None else end, rows[-1] + 1
                end = rows[-1] + 1

    def _name_block(self, row: int) -> str:
        """Return the name of a layer's block: the turns of a `repeat` are blocks of their own."""
        parts, place = self.table.names[row].split("."), 0
        while parts[place + 1 : place + 2] and parts[place + 1].isdecimal():
            place += 2
        return ".".join(parts[: max(place, 1)])

    @property
    def has_other_products(self) -> bool:
        """True if a block has convolutions or other products than those of matrices."""
        rows = range(self.blocks[0][0], self.blocks[-1][1])
        return any(
            self.kinds[row].multiplies and self.kinds[row].name not in MATRICES for row in rows
        )

    @cached_property
    def hidden(self) -> int:
        """h: the features of what goes from block to block."""
        return int(self.table.filters[self.blocks[0][1] - 1])

    @cached_property
    def positions(self) -> int:
        """Positions of a sample."""
        return round(float(self.table.y[self.blocks[0][1] - 1]) / self.hidden)

    @cached_property
    def _memory(self) -> tuple[int, ...]:
        """Tensors that blocks read from an encoder, not from the layer before them."""
        # The layer before a block is its input; what it reads from further up is an encoder's.
        found = {
            maker: None
            for start, end in self.blocks[1:]
            for row in range(start, end)
            if self.kinds[row].keeps_input
            for maker in self.table.inputs[row]
            if SAMPLE < maker < start - 1
        }
        if len(found) > 1:
            raise InputError("expected blocks that read one earlier block's output, got several")
        return tuple(found)

    def _read_block(self, start: int, end: int, behind: int | None = None) -> Block:
        """Read the block of rows start to end, or rows outside of blocks, from start to behind."""
        rows = range(start, end if behind is None else behind)
        kept = {maker for row in rows for maker in self.gradients.read.get(row, ())}
        # What is made in front of a block's own layers is not computed again with them.
        residual = start
        if behind is None:
            residual = next(row for row in rows if "." in self.table.names[row])
        tensors = [
            self._make_tensor(maker, stays=behind is not None or maker < residual)
            for maker in sorted(kept)
            if maker not in self._memory
        ]
        return Block(
            weights=tuple(self._list_weights(rows)),
            tensors=(*tensors, *self._list_masks(rows, behind is not None)),
            attentions=tuple(self._list_attentions(rows)),
            looks_up=any(self.roles[row].of == "vocabulary" for row in rows),
            reads_memory=any(maker in self._memory for maker in kept),
            trains_tables=any(
                self.roles[row].of == "vocabulary" and self.gradients.train(row) for row in rows
            ),
        )

    def _list_weights(self, rows: range) -> Iterator[Weights]:
        narrow = STORED.get(self.model.tuning.weights or "", 0.0) if self.model.tuning else 0.0
        for row in rows:
            role, matrix, biases = self.roles[row], self.table.w[row], self.table.bias[row]
            # Tables of words are no part of a block: `Transformer.vocabulary` counts them.
            if role.of != "vocabulary" and matrix + biases:
                parts = role.parts if role.divided else 0
                by_columns = role.divided == "columns"
                # A token uses 2 FLOPs per weight, and of routed experts only the active ones.
                multiplied = self.kinds[row].name == "linear"
                used = self.table.flops[row] / self.positions / (2 * matrix) if multiplied else 0.0
                again = (self.modules[row] | BLOCKS) * self.gradients.reach(row)
                yield Weights(
                    *(float(matrix), float(biases), parts, by_columns, role.experts),
                    *(float(used), again, self.gradients.train(row)),
                    *(self.gradients.share_products(row) if multiplied else 1.0, role.rank),
                    narrow if multiplied and not self.gradients.train(row) else 0.0,
                )

    def _list_attentions(self, rows: range) -> Iterator[AttentionProducts]:
        """Yield the attentions of some rows: products from one of queries and keys to the next."""
        products = [row for row in rows if self.kinds[row].name in OF_TENSORS]
        starts = [n for n, row in enumerate(products) if n == 0 or self.roles[row].reading]
        for start, end in pairwise([*starts, len(products)]):
            reading = self.roles[products[start]].reading or ONE_HEAD
            flops = sum(self.table.flops[row] for row in products[start:end])
            pairs = self.positions * reading.count_keys(self.positions)
            yield AttentionProducts(
                *(float(flops) / pairs, reading.heads, reading.kv_heads),
                *(reading.causal, reading.window, self.gradients.reach(products[start])),
            )

    def _list_masks(self, rows: range, is_end: bool) -> Iterator[Tensor]:
        """Yield the masks of dropout: behind embeddings, and behind the sum of a residual step."""
        mask = Tensor(self.hidden, "mask", "sequence")
        if is_end:
            if any(self.kinds[row].name == "embedding" for row in rows):
                yield mask
            return
        sums = [row for row in rows if self.kinds[row].name == "add"]
        # A sum in which another's body ends, as of shared and routed experts, ends no step.
        bodies = {self.table.inputs[row][0]: row for row in sums}
        for row in sums:
            if row not in bodies:
                last = row  # the layer that ends the step's body
                while self.kinds[last].name == "add":
                    last = self.table.inputs[last][0]
                is_mlp = self.roles[last].of != "heads"
                yield mask._replace(modules=BLOCKS | (RECOMPUTE["mlp"] if is_mlp else 0))

    def _make_tensor(self, maker: int, stays: bool = True) -> Tensor:
        """Items of a layer's output, or of the sample, that the backward pass reads."""
        readers = self.gradients.readers[maker]
        is_kept, moved = self.gradients.keep(maker)
        if maker == SAMPLE:
            numbers = self.kinds[readers[0]].name == "embedding"
            items = self.table.x[readers[0]] / self.positions
            number, size = (1, "number") if numbers else (float(items), "item")
            return Tensor(number, size, "whole", kept=is_kept, moved=moved)
        role, share = self.roles[maker], self.shares[maker]
        items = self.table.y[maker] / self.positions * role.kept
        size = self.find_size(maker, readers)
        window = 0
        if size == "scores":  # one for each pair of positions
            reading = role.reading or ONE_HEAD
            items, window = items / reading.count_keys(self.positions), reading.window
        passes = not stays and (is_kept or self.gradients.reach(maker))
        modules = (self.modules[maker] | BLOCKS) * passes
        shared = share.divided, share.parts
        return Tensor(float(items), size, *shared, modules, window, is_kept, moved)

    @cached_property
    def shares(self) -> list[Share]:
        """How each layer's output is divided."""
        shares: list[Share] = []
        for row, role in enumerate(self.roles):
            maker, name = self.table.inputs[row][0], self.kinds[row].name
            if role.divided == "columns":
                shares.append(Share("tensor", role.parts))
            elif name == "dispatch":
                shares.append(Share("dispatched"))
            # Behind a matrix divided by rows, outputs are summed over ranks, and so whole again.
            elif role.divided or name in ("linear", "combine") or maker == SAMPLE:
                shares.append(Share())
            else:  # an element-wise layer, which works on what it gets
                shares.append(shares[maker])
        return shares

    @cached_property
    def modules(self) -> list[int]:
        """Modules whose recomputation covers each layer's output, as bits of RECOMPUTE."""
        names: list[str] = []
        for row, (kind, role) in enumerate(zip(self.kinds, self.roles, strict=True)):
            maker = self.table.inputs[row][0]
            name = role.module
            # Norms inside heads, which tensor ranks divide, are not Megatron's `layernorm`.
            if isinstance(kind, Normalisation) and self.shares[row].divided == "sequence":
                name = name or "layernorm"
            elif _passes_on(kind) and maker != SAMPLE:
                name = name or names[maker]
            names.append(name)
        return [self._find_bits(row, name) for row, name in enumerate(names)]

    def _find_bits(self, row: int, name: str) -> int:
        if self.roles[row].experts:
            acts = RECOMPUTE["moe_act"] if _passes_on(self.kinds[row]) else 0
            return RECOMPUTE["moe"] | acts
        # Beside routed experts an MLP is a shared one, computed again with them or by itself.
        if name == "mlp" and row in self._beside_experts:
            return RECOMPUTE["moe"] | RECOMPUTE["shared_experts"]
        return RECOMPUTE.get(name, 0)

    @cached_property
    def _beside_experts(self) -> set[int]:
        """The layers of blocks with experts."""
        return {
            row
            for start, end in self.blocks
            if any(role.experts for role in self.roles[start:end])
            for row in range(start, end)
        }

    def find_size(self, maker: int, readers: list[int]) -> str:
        """Return the bytes per item, as a name of SIZES."""
        kind, role = self.kinds[maker], self.roles[maker]
        if kind.name == "softmax":
            is_last = self.roles[self.table.inputs[maker][0]].of == "vocabulary"
            # Routers' probabilities are in single precision.
            scores = "scores" if role.module == "core_attn" else "single"
            return "logits" if is_last else scores
        if kind.name == "matmul":
            return "context"
        # In low precisions, an output that only matrices read is kept in their input's format.
        by_matrices = all(
            self.kinds[row].name == "linear" and self.roles[row].of != "vocabulary"
            for row in readers
        )
        return "read" if by_matrices else "item"
