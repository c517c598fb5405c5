"""Sweeps of design spaces: plan, run, store, questions about the answers, the command line."""

if __name__ == "sweep":  # in a checkout's own folder; two copies of a module would not agree
    raise ImportError("paradl's modules are in one package: import paradl, or paradl.sweep")
