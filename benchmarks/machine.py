"""The machine of a measurement: date, processor, memory, load, versions."""

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from sweep.engine.resources import machine_memory

RECORDED = ("paradl", "jax", "jaxlib", "numpy", "xarray", "zarr", "numcodecs", "dask")
CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Machine:
    """Machine and date of a measurement. load: average of runnable processes before the start."""

    date: str
    processor: str
    cores: int
    memory: int
    load: float
    system: str
    versions: dict[str, str]

    @classmethod
    def here(cls) -> "Machine":
        """Describe this machine now."""
        return cls(
            date=datetime.now(UTC).isoformat(timespec="minutes"),
            processor=_processor(),
            cores=os.cpu_count() or 1,
            memory=machine_memory(),
            load=os.getloadavg()[0],
            system=f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
            versions={name: version(name) for name in RECORDED},
        )

    def markdown(self) -> str:
        """Return a heading and a line."""
        return f"## {self.date}\n\n{self.describe()}; load {self.load:.1f} before the start\n"

    def describe(self) -> str:
        """Return processor, memory and versions in a line."""
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        memory = f"{self.memory / 2**30:.0f} GiB"
        return f"{self.processor}, {self.cores} cores, {memory}; {self.system}; {versions}"


def _processor() -> str:
    """Return the processor's name, which Python itself knows only on some systems."""
    if CPUINFO.exists():
        for line in CPUINFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
