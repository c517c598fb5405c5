"""Latent attention: keys and values of all heads from a few features of each position.

    layers:
      - latent_attention:
          {heads: 128, query_rank: 1536, rank: 512, content: 128, rotary: 64, value: 128}

DeepSeek-V2 (arXiv 2405.04434), section 2.1, as it is trained: keys and values are written out. A
head's query and key have `content` features, and `rotary` ones that turn with the position; a
key's are the same for all heads.
"""

from typing import ClassVar

from grids.entries.entry import Count
from grids.models.attention import collect, compare, expect_window, keep_sizes, project
from grids.models.composites import BuildingSettings, Site, expect_sequence, make_sequence
from grids.models.tensors import LayerOutput, Passage


class LatentAttention(BuildingSettings):
    """Attention with latent keys and values; query_rank: of latent queries, if they are latent."""

    bare: ClassVar[str] = "heads"

    heads: Count
    rank: Count
    content: Count
    rotary: Count
    value: Count
    query_rank: Count | None = None
    window: Count | None = None

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        positions, features = expect_sequence(name, x.tensor)
        expect_window(name, x.tensor, self.window)
        depth = self.content + self.rotary
        query = self._ask(name, x, depth, site)
        latent = project(site, f"{name}.latent", x, self.rank + self.rotary, bias=False)
        # Of the latent features alone: those that turn are not normalised.
        ranked = make_sequence(positions, self.rank)
        normal = site.add(f"{name}.latent_norm", "rmsnorm", Passage(ranked, ranked), latent)
        written = project(
            site, f"{name}.key_value", normal, self.heads * (self.content + self.value), bias=False
        )
        keys = make_sequence(positions, self.heads * depth)
        key = site.add(f"{name}.key_rotary", "rotary", Passage(keys, keys), written, latent)
        values = LayerOutput(make_sequence(positions, self.heads * self.value), written.maker)
        scores = compare(site, f"{name}.scores", query, key, self.heads)
        weights = site.add(f"{name}.softmax", "softmax", keep_sizes(scores), scores)
        context = collect(site, f"{name}.context", weights, values, self.heads)
        return project(site, f"{name}.output", context, features, bias=False)

    def _ask(self, name: str, x: LayerOutput, depth: int, site: Site) -> LayerOutput:
        """The queries of all heads, turned."""
        if self.query_rank is not None:
            x = project(site, f"{name}.query_latent", x, self.query_rank, bias=False)
            x = site.add(f"{name}.query_norm", "rmsnorm", keep_sizes(x), x)
        query = project(site, f"{name}.query", x, self.heads * depth, bias=False)
        return site.add(f"{name}.query_rotary", "rotary", keep_sizes(query), query)
