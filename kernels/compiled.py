"""Compilation, in double precision: every compiled program of paradl is made here.

`jax.jit` alone makes every result `Any`, and single precision of every number. A program takes a
second and more to trace and compile, for one cell as for a million: a call of few numbers runs in
numpy. The shapes of the call alone decide, so that a question has one answer, in one time, whatever
the process computed before.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from functools import cache, cached_property, update_wrapper
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar

import jax
import numpy as np

from paradl.kernels import programs
from paradl.kernels.arrays import in_numpy, use_numpy

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Tree = TypeVar("Tree")

# The most numbers of a call in numpy, counted over all dimensions that any argument has. With half
# as many, the slowest strategy takes 0.1 s. Beyond, numpy takes 0.2 to 0.7 s, as does a compiled
# program after 1 to 7 s of compiling (ResNet-50, both oracles, 2026-11).
MOST_IN_NUMPY = 2**22
# XLA's newer way of writing fused operations takes 16.6 s of CPU to compile the slopes of 12 inputs
# in three programs, the older one 9.3 s; to run them for 1024 rows each takes 230 and 87 ms (jaxlib
# 0.10.2). By the older one percentiles of blocks take 9.9 instead of 17.2 s to compile for eight
# strategies on two machines, and run as fast; the cells of a search take 5.5 instead of 5.2 ns of
# CPU (2026-11).
OLDER_EMITTERS: dict[str, str | bool] = {"xla_cpu_use_fusion_emitters": False}


class Compiled(Generic[Arguments, Result]):
    """A function in double precision, compiled or run in numpy."""

    def __init__(
        self,
        function: Callable[Arguments, Result],
        static: tuple[str, ...],
        donated: tuple[str, ...],
        numpy: bool | Callable[..., bool],
        few: bool | Callable[..., bool],
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._static, self._donated = static, donated
        self._numpy, self._few = numpy, few
        self._found: dict[object, Future[Any]] = {}
        self._lock = Lock()

    def _compile(self, options: dict[str, str | bool] | None) -> Any:
        return jax.jit(
            self._function,
            static_argnames=self._static,
            donate_argnames=self._donated,
            keep_unused=bool(self._donated),
            compiler_options=options,
        )

    @cached_property
    def _program(self) -> Any:
        return self._compile(None)

    @cached_property
    def _program_of_few(self) -> Any:
        # Only at the first call, since asking the compiler what it knows starts JAX.
        return self._compile(OLDER_EMITTERS) if _are_known() else self._program

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        numpy = self._numpy(*args, **kwargs) if callable(self._numpy) else self._numpy
        if numpy and in_numpy():
            return self._function(*args, **kwargs)
        if numpy and any(getattr(arg, "in_numpy", False) for arg in args):
            with use_numpy():
                return self._function(*args, **kwargs)
        static, others = self._divide(kwargs)
        leaves, structure = jax.tree.flatten((args, others))
        # Types repeat: as a set, they take half of the time.
        traced = any(issubclass(kind, jax.core.Tracer) for kind in set(map(type, leaves)))
        if numpy and not traced and _is_small(leaves):
            with use_numpy():
                return self._function(*args, **kwargs)
        # For this call alone: JAX code of whoever imports paradl keeps its own precision.
        with jax.enable_x64(True):
            if traced:  # part of another program
                result: Result = self._choose_program(args, kwargs)(*args, **kwargs)
            else:
                key = _identify(structure, leaves, static)
                result = self._find_program(key, args, kwargs)(*args, **others)
        return result

    def compile_ahead(
        self, pool: Executor, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> None:
        """Compile in the pool for arguments like these, once; calls wait for their own program.

        Arrays may be `jax.ShapeDtypeStruct`s.
        """
        key = self._make_key(args, kwargs)
        if key not in self._found:
            pool.submit(self._find_program, key, args, kwargs)

    def bind(self, *args: Any) -> Callable[..., Result]:
        """Return the program for arguments like these, to call it often, with others of the shapes.

        A call of few numbers takes half of its time to find its program: 0.86 -> 0.5 ms with 92
        arrays of a dozen runs (2026-11).
        """
        program = self._find_program(self._make_key(args, {}), args, {})

        def call(*args: Any) -> Result:
            with jax.enable_x64(True):
                result: Result = program(*args)
            return result

        return call

    def _make_key(self, args: tuple[Any, ...], kwargs: Mapping[str, object]) -> object:
        static, others = self._divide(kwargs)
        leaves, structure = jax.tree.flatten((args, others))
        return _identify(structure, leaves, static)

    def _find_program(
        self, key: object, args: tuple[Any, ...], kwargs: Mapping[str, object]
    ) -> Any:
        """Return the program for arguments like these: known, from disk, or compiled by one thread
        while others wait for it.
        """
        with self._lock:
            is_new = key not in self._found
            found = self._found.setdefault(key, Future())
        if is_new:
            try:
                found.set_result(self._load_or_compile(str(key), args, kwargs))
            except BaseException as error:
                # Not kept: a later call may succeed, and tells its own reason if not.
                self._found.pop(key, None)
                found.set_exception(error)
        return found.result()

    def _load_or_compile(
        self, key: str, args: tuple[Any, ...], kwargs: Mapping[str, object]
    ) -> Any:
        # The name of a file follows from this package's sources, and so from no other function.
        kept = self._function.__module__.startswith(f"{__package__}.")
        name = f"{self._function.__module__}.{self._function.__qualname__} {key}"
        # The name of a file tells the precision, whichever thread asks.
        with jax.enable_x64(True):
            program = programs.load(name) if kept else None
            if program is None:
                program = self._choose_program(args, kwargs).lower(*args, **kwargs).compile()
                if kept:
                    programs.save(name, program)
        return program

    def _choose_program(self, args: tuple[Any, ...], kwargs: Mapping[str, object]) -> Any:
        few = self._few(*args, **kwargs) if callable(self._few) else self._few
        return self._program_of_few if few else self._program

    def _divide(
        self, kwargs: Mapping[str, object]
    ) -> tuple[Mapping[str, object], Mapping[str, object]]:
        """Return static arguments, and those that a program takes."""
        static = {name: kwargs[name] for name in self._static if name in kwargs}
        return static, {name: value for name, value in kwargs.items() if name not in static}

    def clear(self) -> None:
        """Forget the programs that were compiled so far."""
        self._found.clear()
        for program in (self._program, self._program_of_few):
            program.clear_cache()

    @property
    def programs(self) -> int:
        """Number of programs: one for each set of shapes and static arguments."""
        return len(self._found)


def _identify(structure: object, leaves: list[Any], static: Mapping[str, object]) -> object:
    """Return the key of a program: shapes, and static arguments, which are keywords."""
    shapes = tuple((np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves)
    return structure, shapes, tuple(static.items())


def _is_small(leaves: list[Any]) -> bool:
    """True if a call with these numbers takes no longer in numpy than compiling it would."""
    # Shapes repeat, too.
    return math.prod(_broadcast_all(set(map(np.shape, leaves)))) <= MOST_IN_NUMPY


def _broadcast_all(shapes: Iterable[tuple[int, ...]]) -> list[int]:
    """Return the largest size in each dimension of these shapes, the last dimension first.

    Leading dimensions may mean different things, such as layers and levels.
    """
    sizes: list[int] = []
    for shape in shapes:
        for place, size in enumerate(reversed(shape)):
            if place == len(sizes):
                sizes.append(size)
            elif size > sizes[place]:
                sizes[place] = size
    return sizes


def compiled(
    *static: str,
    donated: tuple[str, ...] = (),
    numpy: bool | Callable[..., bool] = False,
    few: bool | Callable[..., bool] = False,
) -> Callable[[Callable[Arguments, Result]], Compiled[Arguments, Result]]:
    """Compile a function once for each value of its arguments `static`.

    donated: arguments whose memory the results reuse. numpy: the function is written in `xp` and,
    with these arguments, may run in numpy; derivatives trace it, as programs do. few: a call with
    these arguments computes few numbers, so that compiling takes longest; no other program may
    include it then.
    """

    def decorate(function: Callable[Arguments, Result]) -> Compiled[Arguments, Result]:
        return Compiled(function, static, donated, numpy, few)

    return decorate


@cache
def _are_known() -> bool:
    """True if this jaxlib has the older emitters: an option that it does not know is an error."""
    try:
        jax.jit(lambda: 0, compiler_options=OLDER_EMITTERS).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def fetch(tree: Tree) -> Tree:
    """Return the numbers as numpy arrays, which keep double precision outside of programs."""
    fetched: Tree = jax.tree.map(np.asarray, tree)
    return fetched


def put_on_device(tree: Tree) -> Tree:
    """Move the numbers to where programs run: once, and not at each call."""
    # Otherwise JAX would move them in single precision.
    with jax.enable_x64(True):
        moved: Tree = jax.device_put(tree)
        return moved
