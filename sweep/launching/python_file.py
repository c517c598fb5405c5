"""Statements of a configuration in Python, which is parsed and never imported.

What is assigned to attributes, and the keywords of calls, are parameters; a call also states the
name of what makes a value. What is not known here begins with a dollar, as in a script.
"""

import ast
import re
from collections.abc import Mapping

from paradl.grids.reading.errors import InputError, format_count

DEEPEST, MOST_TEXT, MOST_ITEMS = 30, 200, 10_000
# Variables that hold a whole configuration, and what a variable holds that a call made, whose
# arguments are stated by themselves.
CONTAINERS = ("recipe", "config", "cfg", "conf", "args")
MADE = object()
RECIPE = re.compile(r"recipe\w*$|_config$")  # functions that make a whole configuration


class Maker(str):
    """The name of a function or class that makes a value."""


def read_python(text: str, chosen: str) -> tuple[list[tuple[str, object]], list[str]]:
    """Return the parameters of a function, and the words of imports. chosen: its name, or empty.

    InputError: no Python, or no function of that name, or several.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"Python syntax: {str(error)[:80]}") from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    makers = [name for name in functions if not name.startswith("_") and name != "main"]
    if chosen and chosen not in functions:
        raise InputError.unknown("function", chosen, functions)
    # What a file runs, it reads with the arguments that it has there.
    runs = any(
        isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body
    )
    makers = [] if runs else makers
    if not chosen and len(makers) > 1:
        what = f"has {format_count(len(makers), 'configuration')}: {', '.join(makers)[:MOST_TEXT]}"
        raise InputError(what, advice=f"name one: FILE.py:{makers[0]}")
    # A function is named as its network is: llama3_8b_pretrain_config.
    called = [chosen] if chosen else makers
    module = _Module(functions, [("config", Maker(name)) for name in called])
    module.read(tree.body)
    for name in called or [name for name in functions if name == "main"]:
        module.call(name)
    imports = (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    words = [word for node in imports for word in ast.unparse(node).split()]
    return [(key, value) for key, value in module.pairs if key], [*words, *called]


class _Module:
    """A file's functions, the variables of the one that is read, and what it states so far."""

    def __init__(
        self, functions: Mapping[str, ast.FunctionDef], pairs: list[tuple[str, object]]
    ) -> None:
        self.functions, self.pairs, self.depth = functions, pairs, 0
        self.names: dict[str, object] = {}
        self.flags: dict[str, object] = {}  # argparse's defaults

    def call(self, name: str, value: ast.Call | None = None) -> None:
        """Read a function's body, with the arguments of a call of it, and defaults of others."""
        node, outer, self.depth = self.functions[name], self.names, self.depth + 1
        if self.depth < DEEPEST:
            arguments, defaults = [argument.arg for argument in node.args.args], node.args.defaults
            usual = zip(arguments[::-1], map(self.evaluate, defaults[::-1]), strict=False)
            given = zip(arguments, map(self.evaluate, value.args if value else ()), strict=False)
            named = {k.arg or "": self.evaluate(k.value) for k in value.keywords} if value else {}
            self.names = outer | dict(usual) | dict(given) | named
            self.read(node.body)
        self.names, self.depth = outer, self.depth - 1

    def read(self, body: list[ast.stmt]) -> None:
        """Read statements; blocks once, and of an `if` the first branch."""
        for node in body:
            match node:
                case ast.Assign(targets=[target], value=value):
                    self.assign(target, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self.assign(target, value)
                case ast.Return(value=ast.expr() as value) | ast.Expr(value=value):
                    self.add("", value)
                case ast.If() | ast.With() | ast.For() | ast.Try():
                    self.read(node.body)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Read an assignment: to a variable, or to a parameter of what a variable holds."""
        name, _, path = ast.unparse(target).partition(".")
        if isinstance(target, ast.Name):
            is_call = isinstance(value, ast.Call)
            self.names[name] = MADE if is_call else self.evaluate(value)
            if isinstance(value, ast.Call):  # else it states nothing by itself
                is_whole = name in CONTAINERS or RECIPE.search(ast.unparse(value.func))
                self.add("" if is_whole else name, value)
        else:
            self.add(path, value)

    def add(self, prefix: str, value: ast.expr) -> None:
        """Add a value, or the arguments of a call behind its own name."""
        self.depth += 1
        if isinstance(value, ast.Call) and self.depth < DEEPEST:
            self.add_call(prefix, value)
        elif isinstance(value, ast.List) and any(isinstance(e, ast.Call) for e in value.elts):
            for element in value.elts[:MOST_ITEMS]:
                self.add(prefix, element)
        elif (found := self.evaluate(value)) is not MADE:
            self.pairs.append((prefix, found))
        self.depth -= 1

    def add_call(self, prefix: str, value: ast.Call) -> None:
        """Add what a call states: of a function of this file, what its body does."""
        name = ast.unparse(value.func)[:MOST_TEXT]
        root, _, last = name.rpartition(".")
        if name in self.functions:
            self.pairs += [("config", Maker(name))] if name != "main" else []
            self.call(name, value)
            return
        if last == "add_argument":  # of argparse, which commands may replace
            keywords = {keyword.arg: self.evaluate(keyword.value) for keyword in value.keywords}
            if value.args and "default" in keywords:
                flag = str(self.evaluate(value.args[-1])).strip("-").replace("-", "_")
                self.flags[flag] = keywords["default"]
            return
        if name in ("int", "float", "str") and value.args:
            self.add(prefix, value.args[0])
            return
        if isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call):
            self.add(prefix, value.func.value)
        else:
            # What a function of another file returns is not known; classes have capitals.
            is_recipe = not prefix and last.islower() and root.split(".")[0] not in CONTAINERS
            self.pairs.append((prefix or ("recipe" if is_recipe else "config"), Maker(name)))
        for argument in value.args:
            is_class = isinstance(argument, ast.Name) and argument.id not in self.names
            if is_class or isinstance(argument, ast.Attribute):
                self.pairs.append((prefix or "config", Maker(ast.unparse(argument)[:MOST_TEXT])))
            else:
                self.add(prefix or "config", argument)
        for keyword in value.keywords:
            self.add(f"{prefix}.{keyword.arg or ''}".strip("."), keyword.value)

    def evaluate(self, node: ast.expr) -> object:
        """Return the value of a literal, of a variable, or of sums and products; else a text."""
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self.names.get(node.id, f"${node.id}")
            case ast.Attribute() | ast.Call():
                root, _, path = (text := ast.unparse(node)[:MOST_TEXT]).partition(".")
                # Of a configuration: what was stated last; what a recipe has is not known.
                stated = next((v for k, v in reversed(self.pairs) if k and k == path), MADE)
                is_made = root in CONTAINERS or self.names.get(root) is MADE
                return self.flags.get(path, stated) if is_made else text
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
                return -number
            case ast.List() | ast.Tuple():
                return [self.evaluate(element) for element in node.elts[:MOST_ITEMS]]
            case ast.BinOp():
                match self.evaluate(node.left), node.op, self.evaluate(node.right):
                    case int() as left, ast.Mult(), int() as right if abs(left * right) < 2**53:
                        return left * right
                    case int() as left, ast.FloorDiv(), int() as right if right:
                        return left // right
                    case list() as left, ast.Mult(), int() as right if right < MOST_ITEMS:
                        return (left * right)[:MOST_ITEMS]
                    case int() as left, ast.Add(), int() as right:
                        return left + right
                    case list() as left, ast.Add(), list() as right:
                        return left + right
        return f"$({ast.unparse(node)[:MOST_TEXT]})"
