"""`python -m sweep` is `paradl`."""

from sweep.cli.main import main

if __name__ == "__main__":
    main()
