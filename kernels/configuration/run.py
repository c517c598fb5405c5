"""A run: one configuration, and the sums of its terms of time.

Symbols: p PEs = p1 replicas x p2 PEs of a group, the product of the degrees inside a replica; B
global batch; b = B/(A p1) samples of one pass through a replica; A passes per iteration; D samples
per epoch; I = max(D/B, 1) iterations; delta bytes per item; gamma memory reuse; phi contention.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, make_dataclass, replace
from typing import Any

import jax

from paradl.kernels import batches
from paradl.kernels.arrays import STATIC, Cells, pytree, xp
from paradl.kernels.batches import Scaling
from paradl.kernels.machine.device import count_pes
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.names.terms import NOTHING, TERMS, Part, Per, list_terms
from paradl.kernels.options import Options, Rounding


@pytree
class Run:
    """One configuration per cell.

    degrees: by the parallelism that divides a replica; a single one in Table III. spec_batch: b,
    samples per replica, if scaling is weak; B if it is strong. phi: contention of the gradient
    exchange. gradient_delta: bytes per weight in that exchange. accumulate: A, passes before it.
    largest_batch: largest B that converges or that the user allows; None if not stated. sharded:
    bytes of a weight's states that ZeRO divides, as a share of all; None without ZeRO. shards:
    replicas that it divides them over; None: all.
    """

    p: Cells
    replicas: Cells
    degrees: Mapping[str, Cells]
    spec_batch: Cells
    samples: Cells
    segments: Cells
    delta: Cells
    gamma: Cells
    phi: Cells
    gradient_delta: Cells
    accumulate: Cells
    largest_batch: Cells | None = None
    sharded: Cells | None = None
    shards: Cells | None = None
    scaling: Scaling = field(default="weak", metadata=STATIC)

    @property
    def group(self) -> Cells:
        """p2, the PEs of a replica."""
        return count_pes(self.degrees)

    @property
    def batch(self) -> Cells:
        """b, samples of one pass through a replica."""
        return batches.replica_batch(self.spec_batch, self._passes_at_once, self.scaling)

    @property
    def global_batch(self) -> Cells:
        """B, samples per iteration."""
        return batches.global_batch(self.spec_batch, self._passes_at_once, self.scaling)

    @property
    def batch_alone(self) -> Cells:
        """Global batch of a run on a single PE."""
        return batches.global_batch(self.spec_batch, self.accumulate, self.scaling)

    @property
    def _passes_at_once(self) -> Cells:
        """A p1, the passes of an iteration over all replicas."""
        return self.replicas * self.accumulate

    @property
    def passes(self) -> Cells:
        """Exact iterations per epoch, max(D/B, 1): a step takes a whole batch."""
        # Written as a product whose factors have few dimensions each.
        parts = self._passes_at_once if self.scaling == "weak" else 1.0
        return xp.maximum(self.samples / parts * (1 / self.spec_batch), 1.0)

    def iterations(self, rounding: Rounding) -> Cells:
        """Count iterations per epoch, rounded as data loaders do, or not at all."""
        if rounding == "exact":
            # Not D/B: under weak scaling B has the dimensions of both batch and PEs.
            return self.passes
        return batches.iterations(self.samples, self.global_batch, rounding)


Seconds = Mapping[str, Cells]  # by term


def _make_terms(name: str, terms: Iterable[str]) -> Any:
    """Make the pytree of an oracle's terms, a field for each."""
    # Programs that are kept on disk name its module: to be stated before Python 3.12.
    made = make_dataclass(name, terms, namespace={"__module__": __name__}, frozen=True)
    return jax.tree_util.register_dataclass(made)


Terms: Any = _make_terms("Terms", TERMS)
BlockTerms: Any = _make_terms("BlockTerms", LAYOUT_TERMS)


@pytree
class Times:
    """Seconds of each term, and their sums.

    sampled, iterated: compute time paid per sample and per iteration.
    """

    terms: Any
    sampled: Cells
    iterated: Cells
    communication: Cells

    @property
    def compute(self) -> Cells:
        """Compute time [s]."""
        return self.sampled + self.iterated


def add_terms(seconds: Seconds) -> Times:
    """Sum the terms."""

    def add(part: Part, per: Per | None = None) -> Cells:
        first, *others = (seconds[name] for name in list_terms(part, per))
        total: Cells = sum(others, first)
        return total

    return Times(
        Terms(**seconds),
        sampled=add("compute", "sample"),
        iterated=add("compute", "iteration"),
        communication=add("communication"),
    )


def accumulate_passes(seconds: Seconds, run: Run) -> Seconds:
    """Return the terms of A passes, whose accumulated gradients are exchanged and applied once."""
    # NOTHING stays as it is: as a product it would be computed in every cell.
    return {
        name: s if s is NOTHING or TERMS[name].once else run.accumulate * s
        for name, s in seconds.items()
    }


def wait_for_input(times: Times, feed: Cells) -> Times:
    """Extend an iteration until its hosts have supplied the samples, after `feed` seconds."""
    wait = xp.maximum(feed - (times.compute + times.communication), 0.0)
    return replace(
        times, terms=replace(times.terms, input_wait=wait), iterated=times.iterated + wait
    )


def extend_to_epoch(iteration: Times, run: Run, options: Options) -> Times:
    """Compute seconds per epoch: D/B times what a sample costs, I times what an iteration costs."""
    passes, iterations = run.passes, run.iterations(options.iterations)
    times: Times = jax.tree.map(lambda time: time * iterations, iteration)
    # With `ceil` the last batch is smaller: it communicates in full, but computes no sample twice,
    # as in the authors' tool (docs/oracle.md, Iterations).
    # Blocks are timed by whole iterations.
    names = list_terms("compute", "sample") if isinstance(iteration.terms, Terms) else ()
    sampled = {name: getattr(iteration.terms, name) * passes for name in names}
    return replace(times, terms=replace(times.terms, **sampled), sampled=iteration.sampled * passes)
