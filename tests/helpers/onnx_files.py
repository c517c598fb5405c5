"""Small ONNX files with what exporters write, and mutations of them.

A mutation changes fields of their messages (sizes, attributes, names, whole nodes), or bytes.
"""

from collections.abc import Iterator
from math import prod
from random import Random
from typing import Any

from broken_files import mutate
from onnx import ModelProto, TensorProto, helper

INTEGERS = (0, 1, -1, 2, 3, -4, 7, 2**31 - 1, 2**31, 2**62, -(2**63), 2**63 - 1)
TEXTS = ("", "x", "y", "$", "$(1)", "a\nb", "\x1b[31m", "n" * 300, "é", "Conv", "Reshape", "If")
BOTH = {"hidden_size": 12, "direction": "bidirectional"}
WINDOW = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}

Node = tuple[str, str, str, dict[str, Any]]
# Operator, inputs, outputs and attributes. Weights are made of their names: w4x3x3x3 is a tensor.
NETWORKS: dict[str, list[Node]] = {
    "plain": [
        ("Conv", "x w4x3x3x3 b4", "c", WINDOW),
        ("BatchNormalization", "c s4 b4 m4 v4", "n", {}),
        ("Relu", "n", "r", {}),
        ("Add", "r c", "a", {}),
        ("MaxPool", "a", "m", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("GlobalAveragePool", "m", "g", {}),
        ("Flatten", "g", "f", {}),
        ("Gemm", "f v10x4 d10", "y", {"transB": 1}),
    ],
    "view": [
        ("Conv", "x w8x3x3x3", "c", WINDOW),
        ("AveragePool", "c", "p", {"kernel_shape": [8, 8]}),
        ("Shape", "p", "s", {}),
        ("Constant", "", "zero", {"value_int": 0}),
        ("Gather", "s zero", "n", {"axis": 0}),
        ("Constant", "", "first", {"value_ints": [0]}),
        ("Unsqueeze", "n first", "u", {}),
        ("Constant", "", "rest", {"value_ints": [-1]}),
        ("Concat", "u rest", "t", {"axis": 0}),
        ("Reshape", "p t", "f", {}),
        ("MatMul", "f v8x10", "z", {}),
        ("Add", "z d10", "y", {}),
    ],
    "constants": [
        ("Constant", "", "w", {"value": helper.make_tensor("", 1, [4, 3, 1, 1], [0.0] * 12)}),
        ("Constant", "", "size", {"value_ints": [4]}),
        ("ConstantOfShape", "size", "b", {}),
        ("Conv", "x w b", "c", {}),
        ("Conv", "c w4x1x3x3", "h", {"group": 4, "strides": [2, 2], "pads": [0, 0, 1, 1]}),
        ("Clip", "h", "r", {}),
        ("Transpose", "k1x1x4x6", "k", {"perm": [3, 2, 1, 0]}),
        ("Conv", "r k", "y", {"auto_pad": "SAME_UPPER"}),
    ],
    "up": [
        ("Split", "x", "l r", {"axis": 3}),
        ("Concat", "l r", "j", {"axis": 1}),
        ("Pad", "j", "p", {"pads": [0, 0, 1, 1, 0, 0, 1, 1]}),
        ("ConvTranspose", "p w6x4x2x2", "t", {"strides": [2, 2], "output_padding": [1, 1]}),
        ("Sigmoid", "t", "s", {}),
        ("Mul", "t s", "y", {}),
    ],
    # Of tokens: computed positions, a mask, attention of two heads, a norm that is written out, and
    # the table of embeddings once more, transposed.
    "text": [
        ("Gather", "t50x16 x", "e", {}),
        ("Shape", "x", "s", {}),
        ("Constant", "", "zero", {"value_int": 0}),
        ("Constant", "", "one", {"value_int": 1}),
        ("Gather", "s one", "length", {}),
        ("Range", "zero length one", "places", {}),
        ("Gather", "p32x16 places", "p", {}),
        ("Add", "e p", "h", {}),
        ("LayerNormalization", "h g16 b16", "n", {}),
        ("MatMul", "n q16x16", "q0", {}),
        ("Add", "q0 c16", "q1", {}),
        ("MatMul", "n k16x16", "k1", {}),
        ("MatMul", "n v16x16", "v1", {}),
        ("Constant", "", "heads", {"value_ints": [0, 0, 2, 8]}),
        ("Constant", "", "features", {"value_ints": [16]}),
        ("Concat", "s features", "back", {"axis": 0}),
        *(("Reshape", f"{x}1 heads", f"{x}2", {}) for x in "qkv"),
        *(("Transpose", f"{x}2", f"{x}3", {"perm": [0, 2, 1, 3]}) for x in "qv"),
        ("Transpose", "k2", "k3", {"perm": [0, 2, 3, 1]}),
        ("MatMul", "q3 k3", "scores", {}),
        ("Constant", "", "ones", {"value_ints": [1]}),
        ("Unsqueeze", "places ones", "columns", {}),
        ("Constant", "", "minus", {"value_float": float("-inf")}),
        ("Less", "columns places", "later", {}),
        ("Where", "later minus scores", "masked", {}),
        ("Softmax", "masked", "shares", {}),
        ("MatMul", "shares v3", "y3", {}),
        ("Transpose", "y3", "y2", {"perm": [0, 2, 1, 3]}),
        ("Reshape", "y2 back", "y1", {}),
        ("Add", "h y1", "a", {}),
        ("Constant", "", "last", {"value_ints": [-1]}),
        ("ReduceMean", "a last", "mean", {}),
        ("Sub", "a mean", "d", {}),
        ("Mul", "d d", "squares", {}),
        ("ReduceMean", "squares last", "variance", {}),
        ("Sqrt", "variance", "deviation", {}),
        ("Div", "d deviation", "r", {}),
        ("Mul", "r f16", "scaled", {}),
        ("Add", "scaled j16", "o", {}),
        ("Transpose", "t50x16", "turned", {"perm": [1, 0]}),
        ("MatMul", "o turned", "y", {}),
    ],
    "states": [
        ("Gather", "t50x16 x", "e", {}),
        ("Transpose", "e", "rows", {"perm": [1, 0, 2]}),
        ("LSTM", "rows w2x48x16 r2x48x12 b2x96", "l", BOTH),
        ("Transpose", "l", "m", {"perm": [2, 0, 1, 3]}),
        ("Constant", "", "size", {"value_ints": [0, 0, 24]}),
        ("Reshape", "m size", "n", {}),
        ("MatMul", "n v24x50", "y", {}),
    ],
    "calls": [("Outer", "x w3x3x1x1", "h", {}), ("Outer", "h w3x3x1x1", "y", {})],
}
FUNCTIONS: dict[str, list[Node]] = {
    "Inner": [("Conv", "a b", "c", {}), ("Relu", "c", "d", {})],
    "Outer": [("Inner", "a b", "c", {}), ("Inner", "c b", "d", {})],
}


def make_onnx(name: str) -> ModelProto:
    """Return one of NETWORKS, whose samples have 3 x 8 x 8 items, or 8 tokens."""
    listed = NETWORKS[name]
    made = {output for _, _, outputs, _ in listed for output in outputs.split()} | {"x"}
    inputs = {text for _, read, _, _ in listed for text in read.split()} - made
    is_text = name in ("text", "states")
    kind, sizes = (TensorProto.INT64, [8]) if is_text else (TensorProto.FLOAT, [3, 8, 8])
    graph = helper.make_graph(
        [_make_node(*node) for node in listed],
        name,
        [helper.make_tensor_value_info("x", kind, ["N", *sizes])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [_make_weight(text) for text in sorted(inputs)],
    )
    opset = [helper.make_opsetid("", 10 if name == "up" else 18), helper.make_opsetid("mine", 1)]
    functions = [
        helper.make_function("mine", word, ["a", "b"], ["d"], [_make_node(*n) for n in body], opset)
        for word, body in FUNCTIONS.items()
    ]
    return helper.make_model(graph, opset_imports=opset, functions=functions, ir_version=9)


def _make_node(kind: str, inputs: str, outputs: str, attributes: dict[str, Any]) -> Any:
    domain = "mine" if kind in FUNCTIONS else ""
    return helper.make_node(
        kind, inputs.split(), outputs.split(), f"/net/{kind}", domain=domain, **attributes
    )


def _make_weight(name: str) -> TensorProto:
    sizes = [int(size) for size in name[1:].split("x")]
    # Tables, which two operators read, are no zeros, as no trained one is.
    content = bytes([1, 0, 0, 0] if name[0] == "t" else 4) + bytes(4 * prod(sizes) - 4)
    return helper.make_tensor(name, TensorProto.FLOAT, sizes, content, raw=True)


def mutate_onnx(random: Random) -> bytes:
    """Return a file with one to three fields changed, or with changed bytes."""
    model = make_onnx(random.choice([*NETWORKS]))
    if random.random() < 0.3:
        return mutate(model.SerializeToString(), random)
    for _ in range(random.randint(1, 3)):
        _change(random.choice([*_walk(model)]), random)
    content: bytes = model.SerializePartialToString()
    return content


def _walk(message: Any) -> Iterator[Any]:
    """Yield a message and all within it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type:
            for part in value if field.is_repeated else [value]:
                yield from _walk(part)


def _change(message: Any, random: Random) -> None:
    """Change one field of a message."""
    fields = [field for field, _ in message.ListFields()]
    if not fields:
        return
    field = random.choice(fields)
    name, value = field.name, getattr(message, field.name)
    if not field.is_repeated:
        if field.message_type or random.random() < 0.2:
            message.ClearField(name)
        else:
            setattr(message, name, _vary(field, value, random))
        return
    at = random.randrange(len(value))
    kept = [*value]
    match random.randrange(4):
        case 0:
            del value[at]
        case 1:
            value.append(kept[at])
        case 2:
            message.ClearField(name)
            getattr(message, name).extend(random.sample(kept, len(kept)))
        case _ if not field.message_type:
            value[at] = _vary(field, value[at], random)


def _vary(field: Any, value: Any, random: Random) -> Any:
    """Return another value for a field."""
    if field.enum_type is not None:
        return random.choice(field.enum_type.values).number
    if isinstance(value, int):
        is_long = field.type == field.TYPE_INT64
        return random.choice([n for n in INTEGERS if is_long or abs(n) < 2**31])
    if isinstance(value, float):
        return random.choice((0.0, -1.0, float("nan"), float("inf")))
    return random.choice(TEXTS).encode() if isinstance(value, bytes) else random.choice(TEXTS)
