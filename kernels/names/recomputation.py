"""Modules that a transformer may compute again in the backward pass; read without numpy."""

from collections.abc import Mapping

MODULES = (
    *("core_attn", "mlp", "moe", "shared_experts", "layernorm", "moe_act", "mla_up_proj"),
    *("blocks", "full"),
)
# What a layout computes again, as bits of a column: Megatron's modules; whole blocks; all of a
# stage in square-root parts (Chen et al. 2016).
RECOMPUTE: Mapping[str, int] = {name: 1 << bit for bit, name in enumerate(MODULES)}
