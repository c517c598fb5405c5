"""Synonyms of this project's names, such as `bandwidth` for `inter_bandwidth`.

They only serve messages: a synonym is not accepted in place of a name.
"""

from collections.abc import Collection

# By our name. If several share a word, the first one that is valid in the context is meant.
SYNONYMS = {
    # Parameters of a machine.
    "inter_bandwidth": (
        *("bandwidth", "network_bandwidth", "link_bandwidth", "interconnect_bandwidth"),
        *("internode_bandwidth", "infiniband_bandwidth", "ib_bandwidth", "nic_bandwidth"),
    ),
    "intra_bandwidth": ("nvlink_bandwidth", "intranode_bandwidth", "pcie_bandwidth"),
    "inter_latency": ("latency", "network_latency", "link_latency", "internode_latency"),
    "intra_latency": ("nvlink_latency", "intranode_latency"),
    "memory_bandwidth": ("hbm_bandwidth", "dram_bandwidth", "gpu_bandwidth"),
    "memory_capacity": ("memory", "gpu_memory", "memory_size", "hbm", "vram"),
    "peak_flops": ("flops", "tflops", "peak_tflops", "compute"),
    "efficiency": ("mfu",),
    # A run.
    "p": ("pe", "pes", "gpus", "gpu", "num_gpus", "ngpus", "devices", "ranks", "world_size"),
    "pe": ("p", "pes", "gpus", "gpu", "num_gpus", "ngpus", "devices", "ranks", "world_size"),
    "samples_per_replica": ("batch", "batch_size", "local_batch", "micro_batch", "samples"),
    "batch": ("batch_size", "samples_per_replica", "local_batch", "samples"),
    "segments": ("micro_batches", "microbatches", "num_microbatches"),
    "accumulate": ("gradient_accumulation", "gradient_accumulation_steps", "accumulation"),
    "max_global_batch": ("global_batch", "global_batch_size", "largest_batch"),
    "total_s": ("time", "seconds", "total", "iteration_time", "time_s", "step_time"),
    "system": ("machine", "cluster"),
    # Precisions.
    "amp": ("fp16", "float16", "half", "mixed", "mixed_precision"),
    "bf16": ("bfloat16",),
    "fp32": ("float32", "float", "single"),
    # Steps of a model.
    "batchnorm": ("bn", "batch_norm", "batchnorm1d", "batchnorm2d", "batchnorm3d"),
    "layernorm": ("ln", "layer_norm", "rmsnorm"),
    "conv": ("conv1d", "conv2d", "conv3d", "convolution"),
    "transposed_conv": ("deconv", "convtranspose", "convtranspose2d", "upconv"),
    "maxpool": ("maxpool2d", "max_pool", "pool"),
    "adaptive_avgpool": ("gap", "global_avgpool", "adaptiveavgpool2d", "global_average_pool"),
    "fc": ("dense", "fully_connected", "classifier"),
    "silu": ("swish",),
    "attention": ("mha", "multihead_attention", "self_attention"),
    # Data sets.
    "one-billion-words": ("lm1b",),
}


def find_synonym(word: str, names: Collection[str]) -> str | None:
    """Return the name that `word` is a synonym of; None if there is none."""
    folded = word.casefold().replace("-", "_")
    meant = (name for name, words in SYNONYMS.items() if folded in words and name in names)
    return next(meant, None)
