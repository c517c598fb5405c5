"""Table III of ParaDL (HPDC 2021) verbatim, frozen: p1 replicas of groups of p2 PEs.

It reproduces the authors' published predictions and teaches; what real machines do besides is the
other oracle's. Nothing here is shared with it but what both are asked (layers, run, network).
"""
