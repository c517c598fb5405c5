"""Questions and texts whose rows tests read and make at will.

Types leave open the axes of a cube, and which values are there; a test knows both.
"""

from typing import Any

from paradl.sweep.questions import (
    bottleneck,
    catalogue,
    crossovers,
    explain,
    limits,
    needs,
    pareto,
    predict,
    provision,
    regret,
    sensitivity,
)
from paradl.sweep.questions.best import question
from paradl.sweep.text import cubes, explanation, planning, ranking
from paradl.sweep.uncertainty import probability

describe_obstacle: Any = explanation.describe_obstacle
explain_grid: Any = explain.explain_grid
find_chance: Any = probability.find_chance
list_bottlenecks: Any = bottleneck.list_bottlenecks
list_crossovers: Any = crossovers.list_crossovers
list_datasets: Any = catalogue.list_datasets
list_limits: Any = limits.list_limits
list_needs: Any = needs.list_needs
list_parameters: Any = catalogue.list_parameters
list_provisions: Any = provision.list_provisions
list_sensitivities: Any = sensitivity.list_sensitivities
list_front: Any = pareto.list_front
predict_grid: Any = predict.predict_grid
rank_strategies: Any = question.rank_strategies
rank_regrets: Any = regret.rank_regrets
show_difference: Any = cubes.show_difference
show_front: Any = ranking.show_front
show_sensitivities: Any = planning.show_sensitivities
