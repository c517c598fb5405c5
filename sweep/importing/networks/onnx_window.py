"""Windows of ONNX's convolutions and poolings, in the words of a model's file.

ONNX pads either side by itself, a step both sides alike: where that gives the same extents, it is
what a step says, and else rows are added before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paradl.grids.reading.errors import InputError
from paradl.sweep.importing.networks.graph import Sizes
from paradl.sweep.importing.networks.operator_steps import short, unusual

SAME = (b"SAME_UPPER", b"SAME_LOWER")


@dataclass(frozen=True)
class Window:
    """A window that makes the extents `y` of `x`. before, after: rows added on either side."""

    x: Sizes
    y: Sizes
    kernel: Sizes
    stride: Sizes
    dilation: Sizes
    before: Sizes
    after: Sizes
    attributes: Mapping[str, Any]

    @classmethod
    def read(
        cls, attributes: Mapping[str, Any], kernel: Sequence[int], x: Sizes, y: Sizes
    ) -> "Window":
        """Return the window of a node's attributes. InputError: its dimensions differ."""
        rank = len(kernel)
        ones, pads = [1] * rank, attributes.get("pads") or [0] * 2 * rank
        stride, dilation = attributes.get("strides") or ones, attributes.get("dilations") or ones
        if any(len(sizes) != rank for sizes in (x, y, stride, dilation, pads[rank:])):
            raise InputError(f"a window of {rank} dimensions, or its attributes, for {[*x]}")
        before, after = tuple(pads[:rank]), tuple(pads[rank:])
        return cls(x, y, tuple(kernel), tuple(stride), tuple(dilation), before, after, attributes)

    def describe(self) -> tuple[dict[str, Any], Sizes]:
        """Return the settings of a step, and rows to add before it."""
        settings, padding = self._describe_kernel(), self._find_padding()
        if self.attributes.get("ceil_mode"):
            settings["ceil"] = True
        if padding is None:
            return settings, self._both
        return settings | unusual(padding=padding), ()

    def invert(self) -> tuple[dict[str, Any], Sizes]:
        """Return the settings of a transposed convolution, before which no rows are added."""
        more = self.attributes.get("output_padding") or (0,) * len(self.x)
        # Whatever says how many rows are cut off (pads, output_shape, auto_pad): extents tell.
        cut = [
            (n - 1) * stride + size + added - m
            for n, m, stride, size, added in zip(
                self.x, self.y, self.stride, self._span, more, strict=True
            )
        ]
        padding = [max(0, -(-rows // 2)) for rows in cut]
        added = [a + 2 * p - rows for a, p, rows in zip(more, padding, cut, strict=True)]
        return self._describe_kernel() | unusual(padding=padding, output_padding=added), ()

    def _describe_kernel(self) -> dict[str, Any]:
        named = {"kernel": short(self.kernel), "stride": short(self.stride)}
        return named | unusual(dilation=self.dilation)

    def _find_padding(self) -> Any:
        """Return a padding of both sides with the same extents; None: there is none."""
        if self.attributes.get("auto_pad") in SAME:
            return "same"
        if self.before == self.after:
            return self.before
        if self._both == tuple(size - 1 for size in self._span):
            return "same"
        halves = [self._halve(dimension, rows) for dimension, rows in enumerate(self._both)]
        return None if None in halves else halves

    def _halve(self, dimension: int, rows: int) -> int | None:
        room = self.x[dimension] - self._span[dimension]
        for half in (rows - rows // 2, rows // 2):
            if (room + 2 * half) // self.stride[dimension] + 1 == self.y[dimension]:
                return half
        return None

    @property
    def _both(self) -> Sizes:
        """Rows added on both sides together."""
        return tuple(map(sum, zip(self.before, self.after, strict=True)))

    @property
    def _span(self) -> Sizes:
        """Rows that it spans, with the gaps of its dilation."""
        return tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True))
