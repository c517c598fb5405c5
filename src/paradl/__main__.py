"""`python -m paradl` is the command line."""

import os
import signal
import sys

# Of Python, the dynamic loader, the system and XLA, whose errors have many types.
NO_MEMORY = ("MemoryError", "map segment", "allocate memory", "new thread", "RESOURCE_EXHAUSTED")


def main() -> None:
    """Run the command line; Ctrl-C while its modules are imported only ends it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where a shell has it ignored
        # Python would print where in the imports it was; nothing is begun that has to be undone.
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        from paradl.sweep.cli.main import main as run

        signal.signal(signal.SIGINT, before)
        run()
    except Exception as error:
        if not any(words in f"{type(error).__name__}: {error}" for words in NO_MEMORY):
            raise
        # Not by means of the other modules, which may not be there.
        what = str(error).splitlines() or [type(error).__name__]
        print(
            f"paradl: too little memory ({what[0]}); raise the limit (ulimit -v)", file=sys.stderr
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
