"""Oracle parameters: every number that a spec may fix or make an axis of the cube.

One table serves axes, fixed values, command-line settings and the cube's attributes: a row that is
added here may be written in every spec, and grids/inputs/ looks its value up by name. A parameter
that is not given keeps the system's (or the strategy's) own value.
"""

from grids.entries.quantity import ABOVE_ZERO, MOST, Parameter, Prior, Scale, same_in_all

LATENCY = Scale("latency", "s", 0, 1, "us")  # [9 us to 3 ms]; here it is the high one that tells
BANDWIDTH = Scale("bandwidth", "B/s", 1e6, 1e18, "GB/s")  # [12.5 GB/s to 3.35 TB/s]
SPEED = Scale("speed", "FLOP/s", 1e9, 1e21, "TFLOP/s")  # [15.7 to 67 TFLOP/s]
CAPACITY = Scale("memory", "B", 1e6, 1e18, "GB")  # [16 to 80 GB]

# What the medians and spreads of a PE's parameters are fitted to: `python -m benchmarks priors`.
PUBLISHED = "fit to published images/s (grids/catalogue/measured/throughput.csv)"

# What a clock can have told: beyond it a time is a slip of the pen, and sums of it overflow.
SECONDS = Parameter("this", "s", "a measured time", 1e-12, 1e9)

_ALL = (
    # Axes follow this order in every cube, and cases rely on pe to be the first.
    Parameter(
        "pe",
        "1",
        "the number of processing elements (PEs)",
        1,
        MOST,
        whole=True,
        layered=True,
        free=False,
    ),
    Parameter(
        "batch",
        "1",
        "samples a replica under weak scaling, of the whole mini-batch under strong scaling",
        1,
        MOST,
        whole=True,
        free=False,
    ),
    Parameter("intra_bandwidth", "B/s", "bandwidth inside a node", ABOVE_ZERO, scale=BANDWIDTH),
    Parameter(
        "inter_bandwidth",
        "B/s",
        "bandwidth of every level beyond a node",
        ABOVE_ZERO,
        scale=BANDWIDTH,
    ),
    Parameter("intra_latency", "s", "start-up of a message inside a node", 0, scale=LATENCY),
    Parameter("inter_latency", "s", "start-up of a message beyond a node", 0, scale=LATENCY),
    Parameter(
        "staging_bandwidth",
        "B/s",
        "bandwidth through host memory (halo)",
        ABOVE_ZERO,
        scale=BANDWIDTH,
    ),
    Parameter("staging_latency", "s", "start-up through host memory (halo)", 0, scale=LATENCY),
    Parameter("peak_flops", "FLOP/s", "peak FLOP/s of a PE", ABOVE_ZERO, scale=SPEED, layered=True),
    Parameter(
        "efficiency",
        "1",
        "the part of the peak FLOP/s that layers reach",
        ABOVE_ZERO,
        1,
        layered=True,
    ),
    Parameter(
        "memory_bandwidth",
        "B/s",
        "memory bandwidth of a PE",
        ABOVE_ZERO,
        scale=BANDWIDTH,
        layered=True,
    ),
    Parameter("memory_capacity", "B", "memory of a PE", ABOVE_ZERO, scale=CAPACITY),
    # By default single precision.
    Parameter(
        "delta",
        "B",
        "bytes an item",
        ABOVE_ZERO,
        1024,
        default=4.0,
        layered=True,
        oracle="paper",
    ),
    # By default no buffer is reused, the paper's bound. All runs that its authors measured on 16 GB
    # fit from 0.27 down.
    Parameter(
        "gamma",
        "1",
        "the part of the memory that buffer reuse leaves",
        ABOVE_ZERO,
        1,
        default=1.0,
        oracle="paper",
    ),
    # 1 is a flow with its links to itself. On ABCI: up to 2 for gradients of groups of a node, by
    # counting rings; 8 for halos and 2 for gathers, which the authors set by hand.
    Parameter("phi", "1", "contention of the gradient exchange", 1),
    Parameter("phi_halo", "1", "contention of the halo exchange", 1),
    Parameter("phi_gather", "1", "contention of the gather where a spatial split ends", 1),
    Parameter(
        "segments", "1", "segments (micro-batches) of a pipeline", 1, MOST, whole=True, default=4.0
    ),
    Parameter(
        "accumulate",
        "1",
        "passes whose gradients are added up before replicas exchange them",
        1,
        MOST,
        whole=True,
        default=1.0,
    ),
    Parameter(
        "input_rate",
        "1",
        "samples a second that the hosts of a node feed",
        ABOVE_ZERO,
        oracle="machine",
    ),
    Parameter(
        "efficiency_conv2d",
        "1",
        "the part of the peak that 2-D convolutions of many channels reach",
        ABOVE_ZERO,
        1,
        layered=True,
        oracle="machine",
        prior=Prior(
            {"fp32": 0.925, "tf32": 0.347, "amp": 0.604, "bf16": 0.604},
            {"fp32": 0.31, "tf32": 0.40, "amp": 0.40, "bf16": 0.40},
            f"{PUBLISHED}; tf32: ResNet-50 on A100 alone; assumption: bf16 as amp",
        ),
    ),
    Parameter(
        "efficiency_conv3d",
        "1",
        "the part of the peak that 3-D convolutions of many channels reach",
        ABOVE_ZERO,
        1,
        layered=True,
        oracle="machine",
        prior=Prior(
            {"fp32": 0.634, "tf32": 0.238, "amp": 0.414, "bf16": 0.414},
            {"fp32": 0.45, "tf32": 0.60, "amp": 0.60, "bf16": 0.60},
            f"{PUBLISHED}: CosmoFlow in fp32; assumption: the others in its ratio of 0.685",
        ),
    ),
    Parameter(
        "efficiency_matmul",
        "1",
        "the part of the peak that matrix products of many channels reach",
        ABOVE_ZERO,
        1,
        layered=True,
        oracle="machine",
        prior=Prior(
            {"fp32": 0.925, "tf32": 0.347, "amp": 0.604, "bf16": 0.604},
            {"fp32": 0.40, "tf32": 0.60, "amp": 0.50, "bf16": 0.50},
            "assumption: as efficiency_conv2d",
        ),
    ),
    Parameter(
        "half_channels",
        "1",
        "channels, or filters, with which kernels reach half of it",
        0,
        1e6,
        layered=True,
        oracle="machine",
        prior=same_in_all(16.2, 0.66, PUBLISHED),
    ),
    Parameter(
        "elementwise_passes",
        "1",
        "times that other layers move their items, forward and backward",
        ABOVE_ZERO,
        100,
        layered=True,
        oracle="machine",
        prior=same_in_all(2.72, 0.31, PUBLISHED),
    ),
    Parameter(
        "layer_overhead",
        "s",
        "time of a layer in each pass, whatever its size",
        0,
        1,
        layered=True,
        oracle="machine",
        prior=same_in_all(
            9.65e-6, 1.0, "assumption: a few launches of 3 to 5 us; published runs hardly tell"
        ),
    ),
    Parameter(
        "reserved",
        "B",
        "memory of a PE that no tensor has: context, workspaces",
        0,
        scale=CAPACITY,
        oracle="machine",
        prior=same_in_all(
            1e9,
            0.5,
            "assumption: a CUDA context of 0.3 to 0.5 GB, and workspaces of cuDNN, cuBLAS and NCCL",
        ),
    ),
    Parameter(
        "bucket",
        "B",
        "gradients that leave as one message",
        ABOVE_ZERO,
        scale=CAPACITY,
        oracle="machine",
        prior=same_in_all(
            25 * 2.0**20, 0.7, "PyTorch DistributedDataParallel, bucket_cap_mb; plain: one message"
        ),
    ),
    Parameter(
        "overlap",
        "1",
        "the part of the time computing that can hide communication",
        0,
        1,
        oracle="machine",
        prior=same_in_all(0.7, 0.3, "assumption: of software: ddp; plain: 0"),
    ),
    Parameter(
        "jitter",
        "1",
        "spread of a PE's time computing an iteration, of the whole",
        0,
        1,
        oracle="machine",
        prior=same_in_all(
            0.015, 0.7, "scaling of ResNet-50 on 8 V100 in fp32, 0.971 (NVIDIA, DGX-1)"
        ),
    ),
    Parameter(
        "layer_wait",
        "s",
        "what a group that spans nodes, or has replicas, waits at each layer",
        0,
        1,
        oracle="machine",
        prior=same_in_all(
            5e-5, 1.2, "assumption: a part of the 0.4 ms of ABCI, where MPI carries the layers"
        ),
    ),
    Parameter(
        "rail",
        "1",
        "the part of a node's links that all its flows reach together",
        ABOVE_ZERO,
        1,
        oracle="machine",
        prior=same_in_all(0.8, 0.3, "assumption: all-reduces of NCCL reach 0.7 to 0.9 of adapters"),
    ),
    Parameter(
        "flow",
        "1",
        "the part of a node's links that one flow reaches",
        ABOVE_ZERO,
        1,
        oracle="machine",
        prior=same_in_all(
            0.8, 0.5, "assumption: NCCL spreads a ring over all adapters; plain: 0.3, of one"
        ),
    ),
    Parameter(
        "node_reduce",
        "1",
        "the part of the bandwidth inside a node that gradients reach",
        ABOVE_ZERO,
        10,
        oracle="machine",
        prior=same_in_all(
            0.8, 0.4, "assumption: as rail; measured bandwidths may be of fewer links"
        ),
    ),
    Parameter(
        "node_collective",
        "1",
        "the part of the bandwidth inside a node that layers reach",
        ABOVE_ZERO,
        10,
        oracle="machine",
        prior=same_in_all(0.8, 0.6, "assumption: as node_reduce"),
    ),
    Parameter(
        "startup",
        "1",
        "start-ups beyond a node, of the stated",
        ABOVE_ZERO,
        100,
        oracle="machine",
        prior=same_in_all(1, 0.4, "assumption: as stated"),
    ),
    Parameter(
        "assembly",
        "1",
        "bandwidth of putting gathered outputs together, of the memory",
        ABOVE_ZERO,
        10,
        oracle="machine",
        prior=same_in_all(0.3, 1.0, "assumption: one copy; 0.06 on ABCI"),
    ),
    Parameter(
        "part_overhead",
        "s",
        "time of each peer's part of a layer's gather, by filter",
        0,
        1,
        oracle="machine",
        prior=same_in_all(1e-5, 1.0, "assumption: a launch or two; 4e-5 on ABCI"),
    ),
    Parameter(
        "halo_startup",
        "1",
        "start-ups through host memory, of the stated",
        ABOVE_ZERO,
        100,
        oracle="machine",
        prior=same_in_all(1, 0.5, "assumption: as stated"),
    ),
    Parameter(
        "packing",
        "1",
        "copies of gradients to host memory, of the path's bandwidth",
        ABOVE_ZERO,
        10,
        oracle="machine",
        prior=same_in_all(0.75, 0.3, "assumption: as transfers from pinned memory reach it"),
    ),
    Parameter(
        "large_message",
        "1",
        "what of a message is beyond 256 MiB, of the host path's bandwidth",
        ABOVE_ZERO,
        10,
        oracle="machine",
        prior=same_in_all(0.06, 1.0, "assumption: 0.02 on ABCI"),
    ),
    Parameter(
        "host_jitter",
        "1",
        "spread of a node's time for what is beyond 256 MiB, of the whole",
        0,
        1,
        oracle="machine",
        prior=same_in_all(0.1, 0.7, "assumption: 0.2 on ABCI"),
    ),
    Parameter(
        "group", "1", "PEs of a group (a replica) in hybrids", 1, MOST, whole=True, layered=True
    ),
)

PARAMETERS = {parameter.name: parameter for parameter in _ALL}

# By one fact each, so that who asks for it names no parameter.
DEFAULTS = {each.name: each.default for each in _ALL if each.default is not None}
LAYERED = tuple(each.name for each in _ALL if each.layered)
FREE = tuple(each.name for each in _ALL if each.free)
