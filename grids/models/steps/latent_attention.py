"""Latent attention: keys and values of all heads from a few features per position.

    layers:
      - latent_attention:
          {heads: 128, query_rank: 1536, rank: 512, content: 128, rotary: 64, value: 128}

DeepSeek-V2 (arXiv 2405.04434), section 2.1, as in training: keys and values are materialised. The
query and key of a head have `content` features, and `rotary` ones that are rotated by position; the
rotary part of the key is shared by all heads.
"""

from dataclasses import replace
from typing import ClassVar

from paradl.grids.entries.entry import Count
from paradl.grids.models.steps.settings import (
    BuildingSettings,
    Site,
    collect,
    compare,
    expect_sequence,
    keep_sizes,
    make_sequence,
    project,
    weigh,
)
from paradl.grids.models.tensors import LayerOutput, Passage, Reading, Role

# Recomputed from latent features when Megatron recomputes this module.
UP = Role(module="mla_up_proj")


class LatentAttention(BuildingSettings):
    """Attention with latent keys and values; query_rank: rank of latent queries, if any.

    causal, window: as of `attention`.
    """

    bare: ClassVar[str] = "heads"

    heads: Count
    rank: Count
    content: Count
    rotary: Count
    value: Count
    query_rank: Count | None = None
    causal: bool = False
    window: Count | None = None

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        positions, features = expect_sequence(name, x.tensor)
        depth = self.content + self.rotary
        query = self._build_queries(name, x, depth, site)
        latent = project(site, f"{name}.latent", x, self.rank + self.rotary, bias=False)
        # Only latent features are normalised, not the rotary ones.
        ranked = make_sequence(positions, self.rank)
        passage = Passage(ranked, ranked, role=UP)
        normal = site.add(f"{name}.latent_norm", "rmsnorm", passage, latent)
        width = self.content + self.value
        # Rotation copies the keys, so only the values are still read from this output.
        role = Role("columns", "heads", self.heads, UP.module, kept=self.value / width)
        written = project(site, f"{name}.key_value", normal, self.heads * width, role, bias=False)
        keys = make_sequence(positions, self.heads * depth)
        key = site.add(f"{name}.key_rotary", "rotary", Passage(keys, keys), written, latent)
        values = LayerOutput(make_sequence(positions, self.heads * self.value), written.maker)
        reading = Reading(self.heads, self.heads, self.causal, self.window or 0)
        scores = compare(site, f"{name}.scores", query, key, reading)
        weights = weigh(site, name, scores, reading)
        context = collect(site, f"{name}.context", weights, values, reading)
        role = Role("rows", "heads", self.heads)
        return project(site, f"{name}.output", context, features, role, bias=False)

    def _build_queries(self, name: str, x: LayerOutput, depth: int, site: Site) -> LayerOutput:
        """Build the rotated queries of all heads."""
        if self.query_rank is not None:
            x = project(site, f"{name}.query_latent", x, self.query_rank, bias=False)
            x = site.add(f"{name}.query_norm", "rmsnorm", replace(keep_sizes(x), role=UP), x)
        role = Role("columns", "heads", self.heads, UP.module)
        query = project(site, f"{name}.query", x, self.heads * depth, role, bias=False)
        return site.add(f"{name}.query_rotary", "rotary", keep_sizes(query), query)
