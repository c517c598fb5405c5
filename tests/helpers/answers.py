"""The oracle's answers to a problem, from the floors below the sweep alone."""

from dataclasses import fields

import jax
import numpy as np

from grids.inputs.problem import Problem
from grids.inputs.reduction import Reduced, reduced
from kernels.compiled import compiled
from kernels.oracle import Answer, answer, best_group
from kernels.run import Options


def ask(problem: Problem, options: Options) -> Answer:
    """Both stages, in double precision."""
    with jax.enable_x64(True):
        given = reduced(problem, options)
        answers = _answer_all(given, choices=problem.choices, options=options)
        arrays: Answer = jax.tree.map(np.asarray, answers)
        return arrays


@compiled("choices", "options")
def _answer_all(given: Reduced, *, choices: bool, options: Options) -> Answer:
    parts = {each.name: getattr(given, each.name) for each in fields(Reduced)}
    answers = answer(options=options, **parts)
    return best_group(answers) if choices else answers
