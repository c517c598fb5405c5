"""Spatial parallelism: PEs of a group hold parts of every sample's height, width and depth.

ParaDL, Table III, row Spatial, and section 4.4: neighbours send halos, weights are replicated. If
the split ends before the last layer, the parts are gathered there, and backward their gradients
(docs/machine.md).
"""

from collections.abc import Mapping
from dataclasses import replace

from paradl.kernels.arrays import Cells, PerLayer, pytree, xp
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.hosts import (
    count_hosts,
    count_staged,
    find_slowest,
    pack_gradients,
    reduce_staged,
    time_large,
)
from paradl.kernels.machine.library_collectives import Costs, contend, gather_costs, time_fastest
from paradl.kernels.machine.network import Cost, Network, Ring, SpanningRing, find_path, nodes
from paradl.kernels.machine.software import Software
from paradl.kernels.machine.speeds import Fabric, stage_through_hosts
from paradl.kernels.parallelism.parallelism import Add, Exchange, Exchanges, Parallelism, open_logs
from paradl.kernels.work.division import Division
from paradl.kernels.work.layers import Layers
from paradl.kernels.work.rows import layer_halo, row_share, split_point


@pytree
class Halos:
    """Exchanges of a spatial group; items per sample.

    halo_items, halo_exchanges: of all halos. stride: of neighbours along the outermost divided
    dimension. split_items: output of the last split layer, 0 if it is the network's last. sample:
    items of a sample. weights: of all layers. logged: divided convolutions, at which ChainerMNX
    opens log files.
    """

    halo_items: Cells
    halo_exchanges: Cells
    stride: Cells
    split_items: Cells
    sample: Cells
    weights: Cells
    logged: Cells


@pytree
class HaloPaths:
    """Costs of halos, and of gathers where the split ends; slowest_node: z(n)."""

    halos: Cost
    ends: Costs
    slowest_node: Cells


class Spatial(Parallelism):
    """Divides rows of samples."""

    name = sends_as = "spatial"

    def take_part(self, division: Division) -> Layers:
        """Return layers with a share of rows and their arithmetic, but all weights."""
        # A window reads all channels and gives all filters: no weight can be left out.
        layers, (rows_in, rows_out) = division.layers, self.share_rows(division)
        return replace(
            layers, x=layers.x * rows_in, y=layers.y * rows_out, flops=layers.flops * rows_out
        )

    def share_rows(self, division: Division) -> tuple[PerLayer, PerLayer]:
        """Return the shares of the busiest PE, which has the most rows."""
        layers, factors = division.layers, division.placement.factors
        return row_share(layers.extents_x, factors), row_share(layers.extents_y, factors)

    def reduce_sent(self, division: Division, shares: Layers, add: Add) -> Halos:
        """Sum the halos of split layers, and the gather after the last of them."""
        layers, placement = division.layers, division.placement
        split = placement.find_split(self.name)
        # Layers behind the split run whole on every PE, and send nothing.
        items = split * layer_halo(layers, placement.factors, "common")
        depth, height, width = placement.factors
        return Halos(
            halo_items=add(items),
            # Layers without a halo (kernels of 1, or not split) have no start-ups either.
            halo_exchanges=add(xp.where(items > 0, 1.0, 0.0)),
            stride=xp.where(depth > 1, height * width, xp.where(height > 1, width, 1.0)),
            split_items=split_point(layers.y, split),
            sample=xp.asarray(layers.x)[0],
            weights=add(shares.w),
            logged=add(split * layers.convolution),
        )

    def count_items(self, division: Division) -> Mapping[str, PerLayer]:
        placement, halos = division.placement, division.options.halos
        items = layer_halo(division.layers, placement.factors, halos)
        return {"halo_items": placement.find_split(self.name) * items}

    def find_paths(self, sent: Halos, case: Case, fabric: Fabric) -> HaloPaths:
        inside = case.find_ring(self.name)
        ends = gather_costs(fabric.layers, inside, case.options.algorithm)
        return HaloPaths(
            halos=find_halo_path(inside, sent.stride, fabric, case.software),
            ends=contend(ends, fabric.messages.phi_gather),
            slowest_node=_find_slowest_node(case),
        )

    def list_exchanges(self, sent: Halos, case: Case, paths: HaloPaths, batch: Cells) -> Exchanges:
        """List halos, which computing can hide, the gather at the end, and samples to scatter."""
        items = batch * case.run.delta
        # 2 P2P(b a halo(x_l)) + 2 P2P(b a halo(dL/dy_l)) of each layer: to two neighbours.
        halos = paths.halos.time(2 * items * sent.halo_items, 4 * sent.halo_exchanges)
        # Only samples beyond LARGE_MESSAGE: CosmoFlow's of 512^3 are slow, those of 256^3 are not.
        sample = case.run.batch * case.run.delta * sent.sample
        slow = time_large(sample, case.network, case.software)
        slow = slow * (1 + case.software.host_jitter * paths.slowest_node)
        scattered = xp.where(xp.greater(self.find_degree(case), 1), slow, 0.0)
        return (
            # Inner rows compute while halos travel; gradients hide behind what is left of that.
            Exchange("halo_exchange", halos, hideable=halos, share=1.0, before=True),
            Exchange("split_gather", self._time_ends(sent, case, items, paths.ends)),
            Exchange("sample_scatter", scattered, whole=True),
            open_logs(sent.logged, case, self.find_degree(case)),
        )

    def time_once(self, sent: Halos, case: Case) -> Mapping[str, Cells]:
        m = self.count_gradients(sent, case)
        return {"gradient_packing": pack_gradients(m, case.network, case.software)}

    def count_gradients(self, sent: Halos, case: Case) -> Cells:
        """Count m_s [B], gradients that pass through host memory: those of all weights."""
        m = count_staged(case.machine_work, sent.weights, case.run, case.network)
        return xp.where(xp.greater(self.find_degree(case), 1), m, 0.0)

    def reduce_through_hosts(
        self, sent: Halos, case: Case, network: Network, replicas: Ring
    ) -> Cells:
        """Compute the exchange of all weights' gradients, in which one PE of each node leads."""
        m, software = self.count_gradients(sent, case), case.software
        _, others = count_hosts(replicas, network)
        # A leader has its own node's sum already, and all wait for the slowest node's host.
        leaders = (1 - 1 / others) * (1 + software.host_jitter * _find_slowest_node(case))
        slow = leaders * time_large(m, network, software)
        return reduce_staged(m, replicas, network, case.run.phi, slow)

    def _time_ends(self, sent: Halos, case: Case, items: Cells, costs: Costs) -> Cells:
        """Compute 2 AG(q, m), m = b a y_split, if a spatial split ends before the last layer.

        Through host memory 2 (1 - 1/q) m / (gather_rate SB), whatever the number of layers: MPI
        gathers forward and scatters backward, with pages shared between PEs and hosts.
        """
        network = case.network
        m = items * sent.split_items
        # A split that reaches the end gathers nothing, and has no start-up either.
        gathers = xp.where(xp.greater(sent.split_items, 0), 1.0, 0.0)
        beta = network.phi_gather / (
            case.software.gather_rate * xp.asarray(network.staging_bandwidth)
        )
        through_hosts = 2 * (1 - 1 / self.find_degree(case)) * m * beta
        staged = xp.isfinite(network.staging_bandwidth)
        return xp.where(staged, through_hosts, 2 * time_fastest(costs, m, gathers))


PARALLELISM = Spatial()


def _find_slowest_node(case: Case) -> Cells:
    """Spreads by which the slowest of all nodes exceeds the mean."""
    return find_slowest(nodes(case.run.p, case.network))


def find_halo_path(inside: Ring, stride: Cells, fabric: Fabric, software: Software) -> Cost:
    """Return the path of halos between neighbours that are `stride` PEs apart."""
    staged = stage_through_hosts(fabric.messages, software)
    halos = SpanningRing(inside.degree, stride * inside.stride, inside.p, inside.span)
    return find_path(staged, halos).contended(staged.phi_halo)
