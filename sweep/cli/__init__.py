"""The command line, `paradl`."""
