"""The model in an ONNX file without its weights, with local functions in place of their calls.

Its bounds hold for any file: room in memory is counted field by field before protobuf makes a
message, and nodes before functions are written out, since 26 that call each other twice are 2^26.
"""

from collections.abc import Mapping, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from paradl.grids.reading.errors import InputError, add_place, shorten
from paradl.grids.reading.textfile import open_file

# [B] Longer texts and data are left out: weights, and traces of the exporter. The shape arithmetic
# of a network has shorter ones.
MOST_CONTENT = 1024
# [B] of messages in memory, where a field takes about FIELD besides its content: some 2,000 per
# node. The most hostile file of this size takes 1 s.
MOST_ROOM = 2**25
FIELD = 100
MOST_NODES = 10_000  # a model's file has at most 5,000 layers
DEEPEST = 50  # messages in messages, and functions in functions
SIZES = ("dims", "ints")  # fields that are no data, however long

FIXED = {1: 8, 5: 4}  # bytes of protobuf's wire types with a fixed number of them
CUT_OFF = "no ONNX file, or one that is cut off"


def load_model(path: Path, onnx: Any) -> Any:
    """Return the model of a file. InputError: no ONNX, or more than the graph of a network."""
    with open_file(path) as file, add_place(str(path)):
        try:
            with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
                content = _Skimmer(data).skim(len(data), onnx.ModelProto.DESCRIPTOR)
            model = onnx.load_model_from_string(content)
        except InputError:
            raise
        # mmap's for an empty file, the skimmer's at its end, protobuf's for another content.
        except Exception:
            raise InputError(CUT_OFF, advice="is it the right file?") from None
        functions = {(part.domain, part.name): part.node for part in model.functions}
        if _NodeCounter(functions).count(model.graph.node) > MOST_NODES:
            raise InputError(f"more than {MOST_NODES:,} nodes")
        try:
            return onnx.inliner.inline_local_functions(model) if functions else model
        except Exception as error:
            raise InputError(f"its functions cannot be read: {describe(error)}") from None


def describe(error: Exception) -> str:
    """Return the first line of an error of onnx, whose errors have no class in common."""
    line = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return line if line.isprintable() else shorten(line)


class _Skimmer:
    """Copies messages without long texts and data. InputError: cut off, or too large."""

    def __init__(self, data: mmap) -> None:
        self.data, self.room = data, MOST_ROOM

    def skim(self, end: int, form: Any, depth: int = 0) -> bytes:
        """Return the fields up to `end` of a message. form: its descriptor."""
        kept: list[bytes] = []
        while self.data.tell() < end:
            tag = self._read_number()
            kept.append(_write_number(tag))
            match tag & 7:
                case 0:
                    kept.append(_write_number(self._read_number()))
                case 2:
                    content = self._read_content(end, form.fields_by_number.get(tag >> 3), depth)
                    kept += (_write_number(len(content)), content)
                case wire:
                    kept.append(self.data.read(FIXED[wire]))
            self._take(FIELD)
        return b"".join(kept)

    def _read_content(self, end: int, field: Any, depth: int) -> bytes:
        """Return a message, a text or numbers; empty if they are long."""
        length = self._read_number()
        stop = self.data.tell() + length
        if stop > end or depth > DEEPEST:
            raise InputError(CUT_OFF)
        if field is not None and field.message_type is not None:
            return self.skim(stop, field.message_type, depth + 1)
        if length > MOST_CONTENT and (field is None or field.name not in SIZES):
            self.data.seek(stop)
            return b""
        self._take(length)
        content = self.data.read(length)
        if field is not None and field.type == field.TYPE_STRING:
            content.decode()  # protobuf would return what is no text as bytes
        return content

    def _take(self, room: int) -> None:
        self.room -= room
        if self.room < 0:
            raise InputError("larger than the graph of a network, even without its weights")

    def _read_number(self) -> int:
        """Return a number of which each byte has seven bits, the lowest first."""
        number = shift = 0
        while (byte := self.data.read_byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
        return number | byte << shift


def _write_number(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes((*parts, number))


class _NodeCounter:
    """Counts nodes, with those of graphs in attributes and of functions. InputError: too deep."""

    def __init__(self, functions: Mapping[tuple[str, str], Sequence[Any]]) -> None:
        self.functions = functions
        self.counts: dict[tuple[str, str], int] = {}

    def count(self, nodes: Sequence[Any], depth: int = 0) -> int:
        """Return the number of nodes once functions are written out."""
        if depth > DEEPEST:
            raise InputError("its functions call each other in a circle, or too deeply")
        return sum(self._count_node(node, depth + 1) for node in nodes)

    def _count_node(self, node: Any, depth: int) -> int:
        graphs = [graph for part in node.attribute for graph in (part.g, *part.graphs)]
        within = sum(self.count(graph.node, depth) for graph in graphs)
        name = (node.domain, node.op_type)
        if name in self.functions and name not in self.counts:
            self.counts[name] = self.count(self.functions[name], depth)
        return 1 + within + self.counts.get(name, 0)
