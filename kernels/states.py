"""Words of what PEs keep and when: read without JAX."""

from typing import Literal

Zero = Literal[0, 1, 2, 3]  # stages of ZeRO
# Of a pipeline: all segments forward, then all backward; or each backward as soon as it can.
Schedule = Literal["gpipe", "1f1b"]
