"""A network of nodes and racks with round numbers, to work out by hand.

Nodes of 4 PEs with 2 links: inside 1 s and 16 B/s; a link carries 4 B/s between the 4 nodes of a
rack (2 s), and 2 B/s between the 4 racks (4 s). So 8 and 4 B/s leave a node.
"""

from dataclasses import replace

import numpy as np

from paradl.kernels.machine.network import Network, Ring

RACKS = Network(
    span=np.array([4.0, 16, 64]),
    latency=np.array([1.0, 2, 4]),
    bandwidth=np.array([16.0, 4, 2]),
    pes_per_node=4.0,
    links_per_node=2.0,
    staging_latency=0.0,
    staging_bandwidth=np.inf,
    phi_halo=1.0,
    phi_gather=1.0,
)


def oversubscribe(*shares: float) -> Network:
    """Return the network with oversubscribed levels."""
    return replace(RACKS, oversubscription=np.array(shares))


def make_ring(p: float, q: float, s: float) -> Ring:
    """Make a ring of q PEs at stride s, in a run on p."""
    return Ring(np.float64(q), np.float64(s), np.float64(p))
