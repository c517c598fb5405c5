"""Table III of ParaDL (HPDC 2021) verbatim, frozen: p1 replicas of groups of p2 PEs.

It reproduces the authors' published predictions, and teaches. It shares only inputs (layers, run,
network) with the machine oracle.
"""
