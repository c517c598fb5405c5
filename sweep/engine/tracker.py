"""Python's tracker of semaphores, which workers share."""

import os
from multiprocessing import resource_tracker


def start_tracker() -> None:
    """Start Python's tracker of semaphores, silent.

    It removes what a worker that was killed has left, and would warn of it: of no use to anyone.
    """
    usual = os.environ.get("PYTHONWARNINGS")
    # By the environment, as the tracker is a process of its own: filters of this one do not reach
    # it.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (usual, "ignore:resource_tracker")))
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if usual is not None:
            os.environ["PYTHONWARNINGS"] = usual
