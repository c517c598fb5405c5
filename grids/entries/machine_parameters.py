"""Parameters of the machine oracle: of PEs, software and paths, with their priors.

They are rows of the table in `grids.entries.parameters`. docs/machine.md describes their effects.
"""

from dataclasses import replace

from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.entries.quantity import ABOVE_ZERO, BANDWIDTH, CAPACITY, Owner, Parameter, Prior

# Data behind the medians and spreads of a PE's parameters: `python -m benchmarks priors`.
PUBLISHED = "fit to published images/s (grids/catalogue/measured, throughput.csv and grouped.csv)"
TIMED = "fit to published runs of transformers (grids/catalogue/measured/layouts.csv)"


def _constant(median: float, spread: float, source: str) -> Prior:
    """Return the prior of a parameter that is the same for all precisions."""
    return Prior(dict.fromkeys(PRECISIONS, median), dict.fromkeys(PRECISIONS, spread), source)


def _by_precision(fp32: float, tf32: float, reduced: float) -> dict[str, float]:
    """Return a value for each precision; those of fewer bits have the same."""
    return {**dict.fromkeys(PRECISIONS, reduced), "fp32": fp32, "tf32": tf32}


def _ratio(
    name: str, meaning: str, bounds: tuple[float, float], prior: Prior, layered: bool = False
) -> Parameter:
    """Return a row without a unit: a share or a factor."""
    return Parameter(name, "1", meaning, *bounds, layered=layered, prior=prior)


ROWS = (
    Parameter("input_rate", "1", "samples per second that the hosts of a node feed", ABOVE_ZERO),
    _ratio(
        "efficiency_conv2d",
        "share of the peak that 2-D convolutions of many channels reach",
        (ABOVE_ZERO, 1),
        layered=True,
        prior=Prior(
            _by_precision(0.782, 0.397, 0.882),
            _by_precision(0.20, 0.40, 0.22),
            f"{PUBLISHED}; tf32: ResNet-50 on A100 alone; assumption: bf16 as amp",
        ),
    ),
    _ratio(
        "efficiency_conv3d",
        "share of the peak that 3-D convolutions of many channels reach",
        (ABOVE_ZERO, 1),
        layered=True,
        prior=Prior(
            _by_precision(0.782, 0.397, 0.882),
            _by_precision(0.30, 0.50, 0.30),
            "as efficiency_conv2d: CosmoFlow in fp32 and MXNet's 3-D U-Net in amp are within 6 %, "
            "TensorFlow's in amp is 1.7 to 2 times slower",
        ),
    ),
    _ratio(
        "efficiency_matmul",
        "share of the peak that matrix products of many channels reach",
        (ABOVE_ZERO, 1),
        layered=True,
        prior=Prior(
            _by_precision(0.696, 0.343, 0.715),
            _by_precision(0.40, 0.60, 0.60),
            "assumption: 10 to 20 % below efficiency_conv2d; GNMT and BigLSTM are slower still",
        ),
    ),
    _ratio(
        "half_channels",
        "products per sum at which a kernel reaches half its efficiency",
        (0, 1e6),
        layered=True,
        prior=_constant(9.48, 0.30, PUBLISHED),
    ),
    _ratio(
        "tile_filters",
        "filters of a kernel's tile, which is always computed whole; half for 3-D convolutions",
        (1, 1024),
        layered=True,
        prior=_constant(128, 0.0, f"of 64, 96, 128 and 256 the nearest by a {PUBLISHED}"),
    ),
    _ratio(
        "kernel_overlap",
        "share of the shorter of arithmetic and traffic that kernels hide behind the longer",
        (0, 1),
        layered=True,
        prior=_constant(
            0, 0.0, "networks left out, and PipeDream's profiles of operators; 1: the roofline"
        ),
    ),
    _ratio(
        "window_fetch",
        "bandwidth with which grouped convolutions fetch windows, as a share of the memory's",
        (ABOVE_ZERO, 10),
        layered=True,
        prior=_constant(0.457, 0.39, PUBLISHED),
    ),
    _ratio(
        "layout_passes",
        "extra moves of convolutions' items, to the layout of tensor cores: NHWC 0, NCHW 6",
        (0, 100),
        layered=True,
        prior=Prior(
            _by_precision(0.0, 1.51, 1.51),
            _by_precision(0.0, 1.0, 1.0),
            f"{PUBLISHED}; a quarter of NCHW's, since few runs state their layout",
        ),
    ),
    _ratio(
        "winograd",
        "factor by which Winograd reduces products of 3 x 3 convolutions with stride 1; of larger "
        "windows by more",
        (1, 4),
        layered=True,
        prior=Prior(
            _by_precision(1.703, 1.0, 1.0),
            _by_precision(0.2, 0.0, 0.0),
            f"{PUBLISHED}, and at most the 2.25 of Lavin and Gray 2015; plain: 1",
        ),
    ),
    _ratio(
        "elementwise_passes",
        "times that other layers move their items, forward and backward",
        (ABOVE_ZERO, 100),
        layered=True,
        prior=_constant(2.54, 0.20, PUBLISHED),
    ),
    Parameter(
        "layer_overhead",
        "s",
        "host time to launch a layer's kernels in a pass, ahead of the device",
        0,
        1,
        prior=_constant(
            4e-5,
            0.6,
            "assumption: three or four launches of 5 to 10 us, forward and backward, out of Python",
        ),
    ),
    Parameter(
        "reserved",
        "B",
        "memory of a PE for other things than tensors: context, workspaces",
        0,
        scale=CAPACITY,
        prior=_constant(
            1e9,
            0.5,
            "assumption: a CUDA context of 0.3 to 0.5 GB, and workspaces of cuDNN, cuBLAS and NCCL",
        ),
    ),
    Parameter(
        "bucket",
        "B",
        "size of a message of gradients",
        ABOVE_ZERO,
        scale=CAPACITY,
        prior=_constant(
            25 * 2.0**20, 0.7, "PyTorch DistributedDataParallel, bucket_cap_mb; plain: one message"
        ),
    ),
    _ratio(
        "overlap",
        "share of the compute time that can hide communication",
        (0, 1),
        prior=_constant(0.7, 0.3, "assumption: of software: ddp; plain: 0"),
    ),
    _ratio(
        "jitter",
        "spread of a PE's compute time per iteration, as a share of it",
        (0, 1),
        prior=_constant(
            0.015, 0.7, "scaling of ResNet-50 on 8 V100 in fp32, 0.971 (NVIDIA, DGX-1)"
        ),
    ),
    _ratio(
        "rail",
        "share of a node's link bandwidth that all its flows together reach",
        (ABOVE_ZERO, 1),
        prior=_constant(0.8, 0.3, "assumption: all-reduces of NCCL reach 0.7 to 0.9 of adapters"),
    ),
    _ratio(
        "flow",
        "share of a node's link bandwidth that one flow reaches",
        (ABOVE_ZERO, 1),
        prior=_constant(
            0.8, 0.5, "assumption: NCCL spreads a ring over all adapters; plain: 0.3, of one"
        ),
    ),
    _ratio(
        "node_reduce",
        "share of the bandwidth inside a node that gradient exchanges reach",
        (ABOVE_ZERO, 10),
        prior=_constant(0.8, 0.4, "assumption: as rail; measured bandwidths may be of fewer links"),
    ),
    _ratio(
        "node_collective",
        "share of the bandwidth inside a node that exchanges of layers reach",
        (ABOVE_ZERO, 10),
        prior=_constant(0.8, 0.6, "assumption: as node_reduce"),
    ),
    _ratio(
        "startup",
        "factor on the stated start-ups beyond a node",
        (ABOVE_ZERO, 100),
        prior=_constant(1, 0.4, "assumption: as stated"),
    ),
    _ratio(
        "assembly",
        "bandwidth of assembling gathered outputs, as a share of the memory's",
        (ABOVE_ZERO, 10),
        prior=_constant(0.3, 1.0, "assumption: one copy; 0.06 on ABCI"),
    ),
    Parameter(
        "part_overhead",
        "s",
        "time for each peer's part of a layer's gather, with filter parallelism",
        0,
        1,
        prior=_constant(1e-5, 1.0, "assumption: a launch or two; 4e-5 on ABCI"),
    ),
    _ratio(
        "halo_startup",
        "factor on the stated start-ups through host memory",
        (ABOVE_ZERO, 100),
        prior=_constant(1, 0.5, "assumption: as stated"),
    ),
    _ratio(
        "packing",
        "bandwidth of copying gradients to host memory, as a share of the host path's",
        (ABOVE_ZERO, 10),
        prior=_constant(0.75, 0.3, "assumption: as transfers from pinned memory reach it"),
    ),
    _ratio(
        "large_message",
        "bandwidth for the part of a message above 256 MiB, as a share of the host path's",
        (ABOVE_ZERO, 10),
        prior=_constant(0.06, 1.0, "assumption: 0.02 on ABCI"),
    ),
    _ratio(
        "host_jitter",
        "spread of a node's time for the part of a message above 256 MiB, as a share of it",
        (0, 1),
        prior=_constant(0.1, 0.7, "assumption: 0.2 on ABCI"),
    ),
    _ratio(
        "gather_rate",
        "bandwidth of gathers at the end of a spatial split, as a share of the host path's",
        (ABOVE_ZERO, 10),
        prior=_constant(0.1, 1.0, "assumption: memory that PEs and hosts share; 0.04 on ABCI"),
    ),
    Parameter(
        "log_open",
        "s",
        "time for a PE to open its log files at an exchange, one PE after another",
        0,
        1,
        prior=_constant(1e-5, 0.7, "assumption: requests that one metadata server answers; ddp: 0"),
    ),
    Parameter(
        "offload_rate",
        "B/s",
        "bandwidth from a PE to its host, each way, and of a PE's part of the host's memory",
        ABOVE_ZERO,
        scale=BANDWIDTH,
        prior=_constant(5e10, 0.5, "assumption: 0.8 of PCIe 5.0 x16; hosts' memory as much"),
    ),
)
# Of blocks of layers, as transformers have them. Data behind them: `python -m benchmarks layouts`;
# the spread is that which the runs leave a parameter beside the others.
BLOCK_ROWS = (
    _ratio(
        "efficiency_blocks",
        "share of the peak that large matrix products of blocks reach",
        (ABOVE_ZERO, 1),
        layered=True,
        prior=_constant(
            0.819,
            0.05,
            f"{TIMED}: without a limit of power; devices': grids.entries.transformer_rates",
        ),
    ),
    _ratio(
        "product_moves",
        "times that partial sums of a product move to or from memory, if it is square",
        (0, 100),
        layered=True,
        prior=_constant(3.14, 0.24, TIMED),
    ),
    _ratio(
        "efficiency_attention",
        "share of the 16-bit peak that fused attention reaches with many features per head",
        (ABOVE_ZERO, 1),
        layered=True,
        prior=_constant(0.465, 0.16, TIMED),
    ),
    _ratio(
        "block_passes",
        "times that blocks move what the backward pass reads, forward and backward",
        (ABOVE_ZERO, 100),
        layered=True,
        prior=_constant(2.44, 0.39, TIMED),
    ),
    _ratio(
        "score_passes",
        "times that unfused attention moves its scores, forward and backward",
        (ABOVE_ZERO, 1000),
        layered=True,
        prior=_constant(15.4, 0.28, TIMED),
    ),
    _ratio(
        "attention_penalty",
        "slowdown of attention on newer GPUs by software that does without their instructions",
        (1, 100),
        prior=_constant(1.73, 0.17, f"{TIMED}; fsdp, deepspeed, jax"),
    ),
    Parameter(
        "host_pause",
        "s",
        "time that each iteration waits for its host, in stacks for transformers",
        0,
        10,
        prior=_constant(0.0243, 0.8, TIMED),
    ),
    _ratio(
        "straggling",
        "share by which each doubling of the PEs slows an iteration",
        (0, 1),
        prior=_constant(0.00489, 0.72, TIMED),
    ),
    Parameter(
        "checkpoint_wait",
        "s",
        "host time for each block of a micro-batch during which its device waits, with DeepSpeed",
        0,
        1,
        prior=_constant(0.00854, 0.4, TIMED),
    ),
    Parameter(
        "expert_wait",
        "s",
        "host time to launch an expert's kernels, without a grouped product",
        0,
        1,
        prior=_constant(0.000551, 0.1, TIMED),
    ),
)


def _find_owner(row: Parameter) -> Owner:
    """Return what states a parameter; a device those that layers' times depend on."""
    if row.name == "input_rate":
        return "network"
    return "device" if row.layered or row.name == "reserved" else "software"


MACHINE = tuple(
    replace(row, oracle="machine", owner=_find_owner(row)) for row in (*ROWS, *BLOCK_ROWS)
)
