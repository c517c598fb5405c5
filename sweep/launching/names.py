"""Names of frameworks, for options: importing more takes a second."""

FRAMEWORKS = (
    *("megatron", "megatron-bridge", "nemo", "primus", "torchtitan", "torchtitan-0.2"),
    *("deepspeed", "accelerate", "maxtext", "torchrun"),
)
