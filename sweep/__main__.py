"""`python -m sweep` is `paradl`."""

import os
import signal


def main() -> None:
    """Run the command line; Ctrl-C while its modules are imported only ends it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where a shell has it ignored
        # Python would print where in the imports it was; nothing is begun that has to be undone.
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from sweep.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
