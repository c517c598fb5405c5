"""HiGHS (Huangfu and Hall, Math. Prog. Comp. 10, 2018) through SciPy, in the time that is given.

HiGHS looks at its clock now and then, hears no Ctrl-C, and writes to stdout. So it runs in another
process, which is ended when its time is over.
"""

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from grids.placing import highs_process
from grids.placing.rows import Floats, Rows

# Of its time, what HiGHS is told: on a busy machine it took 1.3 s more than the 15 s it had.
TOLD = 0.85

Clock = Callable[[], float]  # seconds that are left


@dataclass(frozen=True)
class Solution:
    """What HiGHS says. optimal: it has proven it; infeasible: that there is none.

    values: of the variables, None where it met none; bound: no solution costs less, None: unknown.
    """

    optimal: bool
    infeasible: bool
    values: Floats | None
    bound: float | None


NOTHING = Solution(optimal=False, infeasible=False, values=None, bound=None)


class Highs:
    """A solver, as a context: its process is started when it is needed and ended with it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def solve(self, rows: Rows, limit: float) -> Solution:
        """The solution within `limit` seconds."""
        if limit <= 0:
            return NOTHING
        answer = self._ask(rows.as_arrays(), limit)
        return NOTHING if answer is None else _read_answer(answer)

    def _ask(self, program: dict[str, Any], limit: float) -> dict[str, Any] | None:
        """The process' answer; None: it has not come in time."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(limit, process.kill)
        timer.start()
        answer: dict[str, Any] | None
        try:
            highs_process.write_message(process.stdin, (program, TOLD * limit))
            answer = highs_process.read_message(process.stdout)
        except OSError:  # the process has been ended
            answer = None
        except BaseException:  # Ctrl-C
            self._stop()
            raise
        finally:
            timer.cancel()
        if answer is None:
            self._stop()
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-P", highs_process.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us
        )
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _read_answer(answer: dict[str, Any]) -> Solution:
    status = answer["status"]
    return Solution(status == 0, status == 2, answer["values"], answer["bound"])
