"""Few cells: a case's outputs and their summary in one piece, in numpy where that is quicker.

The programs of `fill` run at memory speed and take 2 s each to compile, 0.4 s to load.
"""

from kernels.arrays import AnyArray, Cells, xp
from kernels.blocks.outputs import Outputs, count_alone, list_summarised, select_outputs
from kernels.blocks.summary import Line, tabulate_line
from kernels.compiled import compiled
from kernels.configuration.answers import AnyCase


@compiled("names", numpy=True)
def answer_few(case: AnyCase, enough: Cells, *, names: tuple[str, ...]) -> tuple[Outputs, AnyArray]:
    """Return a case's outputs [cells], of size 1 where they do not vary, and its summary's table.

    enough [1, cells but for PEs]: PE seconds in which an epoch is still efficient. The table is
    [statistic, cells but for PEs].
    """
    summarised = list_summarised(case)
    outputs = select_outputs(case, tuple(dict.fromkeys((*names, *summarised))))
    line = Line(
        # The dimensions of choices stand in front of those of the cells.
        p=xp.reshape(case.run.p, (-1, *[1] * (xp.ndim(enough) - 1))),
        enough=xp.asarray(enough, xp.float32),
        **{name: outputs[name] for name in summarised},
        epochs_alone=count_alone(case, xp.ndim(enough)),
    )
    return {name: outputs[name] for name in names}, tabulate_line(line)
