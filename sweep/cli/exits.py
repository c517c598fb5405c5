"""Exit codes, and how a command ends with one."""

import sys

from sweep.show.visible import tell

FAILED = 1
# As Click ends where an option is wrong.
BAD_INPUT = 2
MISSED = 3  # an assertion of the user's did not hold
NOTHING_FEASIBLE = 4
INTERRUPTED = 130  # 128 + SIGINT, as a shell has it


def end(message: str, code: int) -> None:
    """End the process with a message on stderr and an exit code."""
    tell(f"paradl: {message}")
    sys.exit(code)
