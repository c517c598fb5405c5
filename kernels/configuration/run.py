"""A run: what one configuration is, and the terms of its time.

Symbols: p PEs = p1 replicas x p2, the PEs of a group, which is the product of the degrees of what
divides a replica; B global batch, b = B/(A p1) samples of one pass through a replica, A passes an
iteration; D samples an epoch; I = max(D/B, 1) iterations; delta bytes an item; gamma memory reuse;
phi contention.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import jax

from kernels import batches
from kernels.arrays import Cells
from kernels.batches import Rounding, Scaling
from kernels.names.terms import TERMS, Terms, list_terms
from kernels.namespace import xp
from kernels.options import Options
from kernels.work.group import count_pes


@partial(
    jax.tree_util.register_dataclass,
    data_fields=(
        "p",
        "replicas",
        "degrees",
        "spec_batch",
        "samples",
        "segments",
        "delta",
        "gamma",
        "phi",
        "gradient_delta",
        "accumulate",
        "largest_batch",
        "sharded",
    ),
    # It chooses a formula, and so is fixed when a program is compiled.
    meta_fields=("scaling",),
)
@dataclass(frozen=True)
class Run:
    """One configuration a cell. `phi` is the contention of the gradient exchange.

    degrees: into how many parts each parallelism divides a replica, by what it sends; by Table III
    one, of whatever parallelism. spec_batch: b samples a replica where scaling is weak, B of all of
    them where it is strong. gradient_delta: bytes of a weight's gradient where replicas exchange
    it. accumulate: A, passes whose gradients are added up before that. largest_batch: B beyond
    which training does not converge, or the user does not go; None where none is stated. sharded:
    the part of the bytes of a weight's states that ZeRO divides; None without it.
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
    scaling: Scaling = "weak"

    @property
    def group(self) -> Cells:
        """p2: PEs that share a replica."""
        return count_pes(self.degrees)

    @property
    def batch(self) -> Cells:
        """b samples of one pass through a replica."""
        return batches.replica_batch(self.spec_batch, self._passes_at_once, self.scaling)

    @property
    def global_batch(self) -> Cells:
        """B samples an iteration."""
        return batches.global_batch(self.spec_batch, self._passes_at_once, self.scaling)

    @property
    def batch_alone(self) -> Cells:
        """B of one PE, which is one replica."""
        return batches.global_batch(self.spec_batch, self.accumulate, self.scaling)

    @property
    def _passes_at_once(self) -> Cells:
        """A p1 passes, of all replicas, make an iteration."""
        return self.replicas * self.accumulate

    @property
    def passes(self) -> Cells:
        """D/B iterations, exactly, and at least one: a step takes a whole batch."""
        # A product, of which each factor has few dimensions.
        parts = self._passes_at_once if self.scaling == "weak" else 1.0
        return xp.maximum(self.samples / parts * (1 / self.spec_batch), 1.0)

    def iterations(self, rounding: Rounding) -> Cells:
        """I iterations an epoch, rounded as loaders do or not at all."""
        if rounding == "exact":
            # And no quotient D/B: under weak scaling B has the dimensions of batch and PEs.
            return self.passes
        return batches.iterations(self.samples, self.global_batch, rounding)


# Here, and not where it stands: names of terms are read without JAX.
jax.tree_util.register_dataclass(Terms)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Times:
    """Seconds: each term, and together.

    sampled: what each sample's computing takes; iterated: what an iteration's takes besides.
    """

    terms: Terms
    sampled: Cells
    iterated: Cells
    communication: Cells

    @property
    def compute(self) -> Cells:
        """[s] computing."""
        return self.sampled + self.iterated


def add_terms(terms: Terms) -> Times:
    """Terms and their sums."""
    return Times(
        terms,
        sampled=terms.add("compute", "sample"),
        iterated=terms.add("compute", "iteration"),
        communication=terms.communication,
    )


def accumulate_passes(terms: Terms, run: Run) -> Terms:
    """The terms of A passes whose gradients are added up, and exchanged and applied once."""
    often = {name: getattr(terms, name) for name, term in TERMS.items() if not term.once}
    return replace(terms, **{name: run.accumulate * seconds for name, seconds in often.items()})


def wait_for_input(times: Times, feed: Cells) -> Times:
    """The times of an iteration that ends when its PEs have ended, and its hosts have: `feed`."""
    wait = xp.maximum(feed - (times.compute + times.communication), 0.0)
    return replace(
        times,
        terms=replace(times.terms, input_wait=wait),
        iterated=times.iterated + wait,
    )


def extend_to_epoch(iteration: Times, run: Run, options: Options) -> Times:
    """Seconds an epoch: what a sample costs D/B times, what an iteration costs I times."""
    passes, iterations = run.passes, run.iterations(options.iterations)
    times: Times = jax.tree.map(lambda time: time * iterations, iteration)
    # By `ceil` the last batch is a smaller one: it communicates in full, but no sample is computed
    # twice. This is how the authors' tool counts (docs/oracle.md, Iterations).
    sampled = {
        name: getattr(iteration.terms, name) * passes for name in list_terms("compute", "sample")
    }
    return replace(times, terms=replace(times.terms, **sampled), sampled=iteration.sampled * passes)
