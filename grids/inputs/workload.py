"""Workloads: what a strategy trains, on which system, and what was measured of it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from paradl.grids.convergence.entry import Convergence
from paradl.grids.entries.calibration import LayoutTime
from paradl.grids.entries.datasets import Dataset
from paradl.grids.entries.systems import System
from paradl.grids.inputs.calibrated import Calibrated
from paradl.grids.inputs.machine import Machine
from paradl.grids.inputs.uncertainty import Unknown
from paradl.grids.models.architecture import Profile
from paradl.grids.models.layers import LayerTable
from paradl.grids.models.transformers import read_transformer
from paradl.grids.placing.group import NO_GROUPS, PlacedGroups
from paradl.kernels.names.arrays import Floats
from paradl.kernels.work.transformer import Transformer


@dataclass(frozen=True, eq=False)
class Workload:
    """A model's layers for one data set on one system, and the measurements of them.

    seconds [G]: measured FW_l + BW_l on this system's device, None without a measurement.
    calibrated: fit to the machine's runs, if any. profile: how `seconds` were measured; None for
    Table III, which ignores batch. convergence: epochs to a target. placed: groups whose layers
    were placed on devices. origin: the network and the data set themselves. layout_time: a
    calibration of transformers' layouts.
    """

    table: LayerTable
    samples: int
    system: System
    seconds: Floats | None = None
    calibrated: Calibrated | None = None
    profile: Profile | None = None
    convergence: Convergence | None = None
    placed: PlacedGroups = NO_GROUPS
    origin: tuple[Any, Dataset] | None = None
    layout_time: LayoutTime | None = None

    @cached_property
    def transformer(self) -> Transformer:
        """The network as layouts divide it. InputError: it has no blocks."""
        assert self.origin
        return read_transformer(*self.origin)

    @cached_property
    def machine(self) -> Machine:
        """The system with its calibration."""
        return Machine(self.system, self.unknown.file)

    @property
    def unknown(self) -> Unknown:
        """Uncertainty of the layers' times."""
        measured = self.seconds is not None
        assumed = self.profile is not None and bool(self.profile.missing)
        grouped = bool((self.table.groups > 1).any())
        kinds = self.table.of_sequences, grouped, self.table.volumetric
        return Unknown(self.system, measured, self.calibrated, *kinds, assumed)

    @property
    def measured_batch(self) -> int:
        """Samples of the measured pass."""
        return self.profile.pass_batch if self.profile else 1

    @property
    def serial(self) -> float:
        """Calibrated factor on the time of one PE."""
        return self.calibrated.serial.factor if self.calibrated else 1.0
