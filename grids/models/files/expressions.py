"""Expressions in model files: `$width`, `$(4 * width)`, `layer$(stage + 1)`.

They have Python's arithmetic, comparisons, indexing and keys of settings, `len`, `min` and `max`,
and functions among the names that they are given.
Nothing is executed: the text is parsed, and only the syntax nodes handled below are evaluated.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from paradl.grids.reading.errors import InputError, shorten

MOST_TEXT = 200  # characters; longer expressions are hostile, and might exceed Python's recursion
MOST_NUMBER = 2**53  # float64 is exact up to here
MOST_POWER = 64  # a power is computed before its size can be judged

# `$name`, or `$(...)` with parentheses nested at most two deep.
_EXPRESSION = r"\$(?:(\w+)|\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\))"
EXPRESSION = re.compile(_EXPRESSION)

Names = Mapping[str, object]


def _divide(left: Any, right: Any) -> Any:
    # By 0, the division below says so; a remainder would blame a modulo that nobody wrote.
    are_whole = isinstance(left, int) and isinstance(right, int) and right != 0
    return left // right if are_whole and left % right == 0 else left / right


_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_WORDS = {"true": True, "false": False, "null": None}  # spelled as in YAML
_FUNCTIONS: dict[str, Callable[..., Any]] = {"len": len, "min": min, "max": max}


def fill_in(text: str, names: Names) -> object:
    """Substitute the expressions in a text; a single expression gives its value, of any type.

    >>> fill_in("$(2 * width)", {"width": 64})
    128
    >>> fill_in("layer$(stage + 1).$block", {"stage": 0, "block": 2})
    'layer1.2'
    """
    if "$" not in text:
        return text
    whole = EXPRESSION.fullmatch(text)
    if whole is not None:
        return _evaluate_match(whole, names)
    filled = EXPRESSION.sub(lambda match: _write_value(match, names), text)
    if "$" in EXPRESSION.sub("", text):
        raise InputError(
            f"expected an expression behind '$', got {shorten(text)}",
            advice="write $name or $(...), with at most two pairs of parentheses inside",
        )
    return filled


def _write_value(match: re.Match[str], names: Names) -> str:
    """A value inside a text: a number or a short word."""
    value = _evaluate_match(match, names)
    if not isinstance(value, int | str) or len(str(value)) > MOST_TEXT:
        raise InputError(f"expected a number or a word for {match[0]}, got {shorten(value)}")
    return str(value)


def _evaluate_match(match: re.Match[str], names: Names) -> object:
    text = match[1] or match[2] or ""
    try:
        return _evaluate(_parse(text), names)
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot compute {shorten(text)}: {error}") from None


@lru_cache(maxsize=4096)  # a block is written once for each of its repetitions
def _parse(text: str) -> ast.expr:
    """The tree of an expression; ValueError where there is none."""
    if len(text) > MOST_TEXT:
        raise ValueError(f"longer than {MOST_TEXT} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, MemoryError, RecursionError):  # the last two: nested too deep
        raise ValueError("no expression") from None


def _evaluate(node: ast.expr, names: Names) -> Any:
    """The value of a tree; ValueError for what is no arithmetic."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.Name(id=name) if name in _WORDS:
            return _WORDS[name]
        case ast.Name(id=name):
            if name not in names:
                raise InputError.unknown("name", name, names)
            return names[name]
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATORS:
            return _compute(operation, _evaluate(left, names), _evaluate(right, names))
        case ast.UnaryOp(ast.USub(), operand):
            return _compute(ast.Sub(), 0, _evaluate(operand, names))
        case ast.UnaryOp(ast.Not(), operand):
            return not _decide(operand, names)
        case ast.BoolOp(operation, values):
            results = (_decide(value, names) for value in values)
            return all(results) if isinstance(operation, ast.And) else any(results)
        case ast.Compare(left, [comparison], [right]) if type(comparison) in _COMPARISONS:
            return _COMPARISONS[type(comparison)](_evaluate(left, names), _evaluate(right, names))
        case ast.IfExp(test, body, orelse):
            return _evaluate(body if _decide(test, names) else orelse, names)
        case ast.Subscript(value, index):
            return _evaluate(value, names)[_evaluate(index, names)]
        case ast.Attribute(value, key):  # of a mapping: `stage.filters`
            whole = _evaluate(value, names)
            if not isinstance(whole, dict) or key not in whole:
                raise ValueError(f"{shorten(whole)} has no {key}")
            return whole[key]
        case ast.Call(ast.Name(id=name), arguments, []):
            function = _FUNCTIONS.get(name) or names.get(name)
            if callable(function):
                return function(*(_evaluate(argument, names) for argument in arguments))
        case ast.List(parts):
            return [_evaluate(part, names) for part in parts]
    raise ValueError(f"{type(node).__name__} is no arithmetic of numbers")


def _decide(node: ast.expr, names: Names) -> bool:
    """A condition's value; ValueError for what is neither true nor false."""
    value = _evaluate(node, names)
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shorten(value)}")
    return value


def _compute(operation: ast.operator, left: object, right: object) -> int | float:
    """The result of two numbers, of a size that counts exactly."""
    # Texts and lists have products, too, which could fill any memory.
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise ValueError(f"expected numbers, got {shorten(left)} and {shorten(right)}")
    if isinstance(operation, ast.Pow) and not 0 <= right <= MOST_POWER:
        raise ValueError(f"expected a power from 0 to {MOST_POWER}, got {shorten(right)}")
    result: int | float = _OPERATORS[type(operation)](left, right)
    if not abs(result) <= MOST_NUMBER:
        raise ValueError("a number beyond 2^53")
    return result
