"""Errors in input: one clear message instead of a traceback.

An `InputError` is for the user to fix: it says where, what, and what to do. A `ShapeError` is a
result rather than a mistake: a sweep combines all models with all data sets and marks pairs that do
not fit. Users' values enter messages through `shorten`, so messages stay short.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from reprlib import Repr
from typing import Literal

from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS

MOST_TEXT = 900  # characters of a message
MOST_VALUE = 80  # characters of a value in a message
MOST_NAMES = 500  # characters of the known names in a message
NAMES_BESIDE_HINT = 20  # with more known names, only the hint is shown, or it would be overlooked
NAMES_COMPARED = 1000  # comparing is quadratic, and an axis may have a million values

# Words for our names, for messages only: none is accepted in place of a name. If several share a
# word, the first one that is valid in the context is meant.
SYNONYMS = {
    # Parameters of a machine.
    "inter_bandwidth": (
        *("bandwidth", "network_bandwidth", "link_bandwidth", "interconnect_bandwidth"),
        *("internode_bandwidth", "infiniband_bandwidth", "ib_bandwidth", "nic_bandwidth"),
    ),
    "intra_bandwidth": ("nvlink_bandwidth", "intranode_bandwidth", "pcie_bandwidth"),
    "inter_latency": ("latency", "network_latency", "link_latency", "internode_latency"),
    "intra_latency": ("nvlink_latency", "intranode_latency"),
    "memory_bandwidth": ("hbm_bandwidth", "dram_bandwidth", "gpu_bandwidth"),
    "memory_capacity": ("memory", "gpu_memory", "memory_size", "hbm", "vram"),
    "peak_flops": ("flops", "tflops", "peak_tflops", "compute"),
    "efficiency": ("mfu",),
    # A run.
    "p": ("pe", "pes", "gpus", "gpu", "num_gpus", "ngpus", "devices", "ranks", "world_size"),
    "pe": ("p", "pes", "gpus", "gpu", "num_gpus", "ngpus", "devices", "ranks", "world_size"),
    "samples_per_replica": ("batch", "batch_size", "local_batch", "micro_batch", "samples"),
    "batch": ("batch_size", "samples_per_replica", "local_batch", "samples"),
    "segments": ("micro_batches", "microbatches", "num_microbatches"),
    "accumulate": ("gradient_accumulation", "gradient_accumulation_steps", "accumulation"),
    "max_global_batch": ("global_batch", "global_batch_size", "largest_batch"),
    "total_s": ("time", "seconds", "total", "iteration_time", "time_s", "step_time"),
    "system": ("machine", "cluster"),
    # Degrees and settings of a layout, as strategies and as layouts write them.
    **{row.name: (row.word, *row.also) for row in LAYOUT_COLUMNS.values()},
    "group": ("pp", "stages", "degree", "size", "tp"),
    **{row.word: (row.name, *row.also) for row in LAYOUT_COLUMNS.values() if row.word != row.name},
    "core_attn": ("selective", "attention"),
    # Precisions.
    "amp": ("fp16", "float16", "half", "mixed", "mixed_precision"),
    "bf16": ("bfloat16",),
    "fp32": ("float32", "float", "single"),
    # Steps of a model.
    "batchnorm": ("bn", "batch_norm", "batchnorm1d", "batchnorm2d", "batchnorm3d"),
    "layernorm": ("ln", "layer_norm", "rmsnorm"),
    "conv": ("conv1d", "conv2d", "conv3d", "convolution"),
    "transposed_conv": ("deconv", "convtranspose", "convtranspose2d", "upconv"),
    "maxpool": ("maxpool2d", "max_pool", "pool"),
    "adaptive_avgpool": ("gap", "global_avgpool", "adaptiveavgpool2d", "global_average_pool"),
    "fc": ("dense", "fully_connected", "classifier"),
    "silu": ("swish",),
    "attention": ("mha", "multihead_attention", "self_attention"),
    # Data sets.
    "one-billion-words": ("lm1b",),
}


# Pages docs/errors/NAME.md, for errors of which there is more to say than a line holds.
ErrorPage = Literal[
    "",
    "another-sweep",
    "damaged-store",
    "missing-library",
    "no-cube",
    "not-in-the-cube",
    "nothing-feasible",
    "other-code",
    "unknown-name",
    "wrong-key",
    "wrong-value",
]


class InputError(ValueError):
    """Bad input; the message says where, what, and what to do.

    page: of the documentation, which the command line names after the message.
    """

    def __init__(
        self, what: str, *, where: str = "", advice: str = "", page: ErrorPage = ""
    ) -> None:
        prefix = f"{where}: " if where else ""
        suffix = f"; {advice}" if advice else ""
        super().__init__(_cut_middle(f"{prefix}{what}{suffix}", MOST_TEXT))
        self.page = page

    @classmethod
    def unknown(
        cls, kind: str, name: object, names: Iterable[str], *, where: str = ""
    ) -> "InputError":
        """Return the error for an unknown name, with the nearest known one as advice."""
        advice = suggest_name(str(name), names)
        what = f"unknown {kind} {shorten(name)}"
        return cls(what, where=where, advice=advice, page="unknown-name")


@contextmanager
def add_place(where: str) -> Iterator[None]:
    """Let the InputErrors of a block begin with a place."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error), where=where) from None


class ShapeError(ValueError):
    """A sample does not fit a network; the message names the layer."""

    def __init__(self, what: str) -> None:
        super().__init__(_cut_middle(what, MOST_TEXT))


class _Short(Repr):
    """`repr` of a few parts of a value of any size and depth."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = self.maxlong = MOST_VALUE

    def repr_int(self, x: int, level: int) -> str:
        # Python does not print numbers of more than 4300 digits, such as 0xfff... in a file.
        return super().repr_int(x, level) if x.bit_length() < 1000 else "an enormous number"


def shorten(value: object) -> str:
    """Return a user's value for a message, at most MOST_VALUE characters."""
    return _cut_middle(_Short().repr(value), MOST_VALUE)


def format_text(text: object) -> str:
    """Return a user's text without quotes if it is short and on one line."""
    usual = isinstance(text, str) and text.isprintable() and len(text) <= MOST_VALUE
    return str(text) if usual else shorten(text)


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as `1 row` and `2,000 rows`.

    plural: other than the noun with an s, or es after a ch.
    """
    several = plural or noun + ("es" if noun.endswith("ch") else "s")
    return f"{count:,} {noun if count == 1 else several}"


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Advise on an unknown name: the probable one, and the known ones."""
    listed = sorted(islice(names, NAMES_COMPARED))
    meant = find_meant(name, listed)
    text = ", ".join(listed) or "none"
    known = f"known: {text if len(text) <= MOST_NAMES else f'{text[:MOST_NAMES]}...'}"
    if meant is None:
        return known
    hint = f"did you mean {shorten(meant)}?"
    return hint if len(listed) > NAMES_BESIDE_HINT else f"{hint} {known}"


def find_meant(name: str, names: Collection[str]) -> str | None:
    """Return the name that an unknown one probably means; None if there is none."""
    word = name.casefold().replace("-", "_")
    for meant, words in SYNONYMS.items():
        if word in words and meant in names:
            return meant
    # Similar digits do not make numbers similar: 200 is not a typo of 2000.
    if is_number(name):
        return None
    folded = {name.casefold(): name for name in names}
    close = get_close_matches(name[:MOST_VALUE].casefold(), folded, n=1)
    return folded[close[0]] if close else None


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cut_middle(text: str, most: int) -> str:
    """Keep the beginning, which says where, and the end, which says what to do."""
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"
