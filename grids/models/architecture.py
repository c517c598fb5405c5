"""Architecture: a network for samples of any size.

It has either `layers`, a list of steps (grids/models/steps/step.py), or a `family` with settings,
which produces such steps: `family: {name: resnet, stages: [3, 4, 6, 3]}`.

ParaDL (Kahira et al., HPDC 2021), section 4: FW + BW per sample is measured once per network and
device, on one PE; the oracle spreads it over the layers by their FLOPs.
"""

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from paradl.grids.entries.datasets import Dataset
from paradl.grids.entries.entry import Count, Entry, Name, Record, Sources
from paradl.grids.entries.names import is_path
from paradl.grids.entries.precision import AnyPrecision, PrecisionName
from paradl.grids.entries.quantity import SECONDS
from paradl.grids.models.files.template import Family, Form, Template, Word
from paradl.grids.models.layers import LayerTable
from paradl.grids.models.steps.inference import infer_layers
from paradl.grids.models.steps.step import Steps
from paradl.grids.models.tuning import Tuning
from paradl.grids.reading.errors import InputError, ShapeError, format_count
from paradl.grids.reading.yamlfile import (
    KeyLocation,
    KeyPath,
    Source,
    explain_error,
    load,
    validate,
)
from paradl.kernels.names.arrays import Floats

Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]

# Assumed samples per pass if a profile does not state them; usual in ParaDL's experiments.
USUAL_BATCH = 32


class Profile(Record):
    """Seconds per sample, forward and backward, on a device, for one sample shape.

    device: the PE's name in files of systems. shape: of a sample, channels first. seconds: of a
    sample [s]. batch, precision: conditions of the measurement; if missing, the machine oracle
    assumes USUAL_BATCH and the system's precision, with a wider spread.
    """

    device: Name
    shape: tuple[Count, ...]
    seconds: Annotated[float, BeforeValidator(SECONDS.read, json_schema_input_type=float | str)]
    batch: Count | None = None
    precision: AnyPrecision | None = None
    source: Sources = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The conditions (batch, precision) that are not stated."""
        return tuple(name for name in ("batch", "precision") if getattr(self, name) is None)

    @property
    def pass_batch(self) -> int:
        """Samples of the measured pass, stated or usual."""
        return self.batch or USUAL_BATCH


class Constants(Record):
    """Numbers that change no prediction, and that a launch line states.

    rotary_base: of rotary positions. rope_scaling: how they are stretched to longer sequences.
    rope_factor: by how much. norm_epsilon: of norms. The defaults are Megatron-LM's.
    """

    rotary_base: Above0 = 1e4
    rope_scaling: Name | None = None
    rope_factor: Above0 | None = None
    norm_epsilon: Above0 = 1e-5


def find_nearest_profile(
    profiles: Iterable[Profile],
    device: Name,
    shape: tuple[int, ...],
    precision: PrecisionName | None = None,
) -> Profile | None:
    """Return the profile of this device for `shape`, else for the shape nearest in items.

    The caller scales its seconds by the FLOPs of both shapes. precision: only profiles in it or of
    unstated precision; fully stated ones come first.
    """
    items = math.prod(shape)
    fitting = [
        profile
        for profile in profiles
        if profile.device == device and precision in (None, profile.precision or precision)
    ]
    # By ratio: half the items are as near as twice as many. CosmoFlow's times at 512^3 and 256^3
    # have the same ratio, 8.0, as the items.
    return min(
        fitting,
        key=lambda profile: (
            precision is not None and bool(profile.missing),
            profile.shape != shape,
            abs(math.log(math.prod(profile.shape) / items)),
        ),
        default=None,
    )


def describe_profile(profile: Profile) -> str:
    """Describe a profile by device, shape, batch, precision and source."""
    shape = " x ".join(map(str, profile.shape))
    batch = format_count(profile.pass_batch, "sample") + (
        " (assumed)" if profile.batch is None else ""
    )
    precision = profile.precision or "precision not stated"
    source = f"; {', '.join(profile.source)}" if profile.source else ""
    return f"{profile.device}, {shape}, {batch}, {precision}{source}"


TEMPLATE_KEYS = ("settings", "words")

# Signs of a template in a message about a plain file.
TEMPLATE_WORDS = re.compile(r"\$|'(?:if|set)'|\.(?:if|set|index):")

TEMPLATE_ADVICE = (
    "expressions, 'if', 'set' and 'index' need 'settings' at the top of the file, even if only "
    "'settings: {}'"
)


class Architecture(Entry):
    """A network for any sample of its rank.

    rank: number of spatial dimensions; 1 of sequences. layers: steps in order. family: the blocks
    that it has, with their settings. profiles: measured times. customary: the data set for which
    its size is usually quoted. longest: tokens of the longest sequence it was trained for.
    constants: numbers of launch lines. tuning: what of it is trained; by default all.
    spatial_layers: number of first layers that spatial groups divide, before parts are gathered; by
    default all.
    """

    SETTINGS: ClassVar = tuple(Tuning.model_fields)  # keys that `NAME:key=value` may set

    rank: Literal[1, 2, 3]
    layers: Annotated[Steps, Field(min_length=1)] | None = None
    family: Family | None = None
    # At most 16: validation infers the layers once per profile.
    profiles: Annotated[tuple[Profile, ...], Field(max_length=16)] = ()
    customary: str | None = None
    longest: Count | None = None
    constants: Constants | None = None
    tuning: Tuning | None = None
    spatial_layers: Count | None = None

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        if (self.layers is None) == (self.family is None):
            raise ValueError("expected either 'layers' or 'family', got both or neither")
        return self

    @model_validator(mode="after")
    def _check_profiles(self) -> Self:
        """Check that the measured shapes fit the network."""
        for index, profile in enumerate(self.profiles):
            try:
                # Whether a shape fits does not depend on the number of targets.
                self.layers_for(profile.shape, targets=1)
            except ShapeError as error:
                raise ValueError(f"profiles.{index}.shape: {error}") from None
        return self

    @property
    def steps(self) -> Steps:
        """The network's steps: its layers, or those of its family."""
        return self.layers or (self.family.write_steps() if self.family else ())

    @property
    def fingerprint(self) -> str:
        """16 digits of a hash of the network alone: title, source and profiles do not change it."""
        keys = {"rank", "layers", "family", "spatial_layers", "tuning"}
        network = self.model_dump(mode="json", include=keys, exclude_none=True)
        return sha256(json.dumps(network, sort_keys=True).encode()).hexdigest()[:16]

    def with_settings(self, settings: Mapping[str, str]) -> Self:
        """Return the network tuned so, as its new name says. ValidationError: it cannot be."""
        given = self.tuning.model_dump(exclude_unset=True) if self.tuning else {}
        given |= settings
        stated = {key: given[key] for key in self.SETTINGS if key in given}
        label = ",".join(f"{key}={value}" for key, value in stated.items())
        changes = {"name": f"{self.name.partition(':')[0]}:{label}", "tuning": stated}
        return self.from_definition(self.definition() | changes)

    def table(self, dataset: Dataset) -> LayerTable:
        """Return the layers for the data set's samples; ShapeError if they do not fit."""
        return self.layers_for(dataset.shape, dataset.targets)

    def layers_for(self, shape: tuple[int, ...], targets: int | None) -> LayerTable:
        """Return the layers for samples of `shape` (C, [d,] h, w) and `targets` outputs."""
        if len(shape) - 1 != self.rank:
            kinds = "sequences" if self.rank == 1 else f"samples of {self.rank} spatial dimensions"
            raise ShapeError(f"{self.name} takes {kinds}, got {len(shape) - 1} spatial dimensions")
        return _infer_once(self, shape, targets)

    def profile(
        self, dataset: Dataset, device: str, precision: PrecisionName | None = None
    ) -> Profile | None:
        """Return the measurement nearest to the data set's samples.

        precision: only measurements in it or of unstated precision; None: all.
        """
        return find_nearest_profile(self.profiles, device, dataset.shape, precision)

    def profiles_on(self, device: str) -> tuple[Profile, ...]:
        """Return the measurements on a device."""
        return tuple(profile for profile in self.profiles if profile.device == device)

    def seconds(
        self, dataset: Dataset, device: str, precision: PrecisionName | None = None
    ) -> Floats | None:
        """Return measured FW_l + BW_l per sample [G] on a device; None without a measurement."""
        profile = self.profile(dataset, device, precision)
        if profile is None:
            return None
        # For a shape that was not measured, each layer's time scales with its FLOPs.
        measured = self.layers_for(profile.shape, dataset.targets)
        return profile.seconds * self.table(dataset).flops / float(measured.flops.sum())


@lru_cache(maxsize=256)  # every part of a sweep needs the layers again
def _infer_once(model: Architecture, shape: tuple[int, ...], targets: int | None) -> LayerTable:
    table = infer_layers(model.name, model.steps, shape, targets, model.tuning)
    return replace(table, spatial_layers=model.spatial_layers)


class TemplateFile(Architecture):
    """A template's keys, for schemas and messages.

    settings: names with defaults, which layers use as $name. words: steps defined in the file.
    """

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [key]} for key in TEMPLATE_KEYS]}
    )

    settings: Form = Field(default_factory=dict)
    words: dict[str, Word] = Field(default_factory=dict)
    layers: list[Any]  # type: ignore[assignment]  # not yet plain steps


ModelFile = Architecture | TemplateFile


def read_architecture(data: Mapping[str, object], source: Source, base: Path) -> Architecture:
    """Return the architecture in a file's data; InputError begins with the place in `source`.

    base: folder for relative paths of families.
    """
    family = data.get("family")
    # A family in a file of its own is a template, of which this file gives the settings.
    if isinstance(family, Mapping) and is_path(str(family.get("name"))):
        given = {key: value for key, value in family.items() if key != "name"}
        document = load(base / os.path.expanduser(str(family["name"])))
        rest = {key: value for key, value in data.items() if key != "family"}
        if "layers" in data:
            raise InputError(
                "expected either 'layers' or 'family', got both", where=KeyLocation(source, ()).text
            )
        return _write_out(document.data, document, given, rest, source)
    if any(key in data for key in TEMPLATE_KEYS):
        rest = {key: value for key, value in data.items() if key not in TEMPLATE_KEYS}
        return _write_out(data, source, {}, rest, source)
    try:
        return validate(Architecture, data, source)
    except InputError as error:
        # Of a family, the expressions are its own.
        if "layers" in data and TEMPLATE_WORDS.search(str(error)):
            raise InputError(f"{error}\n{TEMPLATE_ADVICE}") from None
        raise


def _write_out(
    template: Mapping[str, object],
    origin: Source,
    given: Mapping[str, object],
    rest: Mapping[str, object],
    source: Source,
) -> Architecture:
    """Expand the layers of a template from `origin`, with other keys from `source`."""
    keys = {key: template[key] for key in (*TEMPLATE_KEYS, "layers") if key in template}
    try:
        form = Template.model_validate(keys)
    except ValidationError as error:
        raise explain_error(error, origin, TemplateFile) from None

    def locate_key(keypath: KeyPath) -> str:
        # A family's settings stand in the file that names the family.
        if origin is not source and keypath[:1] == ("settings",):
            return KeyLocation(source, ("family", *keypath[1:])).text
        return KeyLocation(origin, keypath).text

    written = form.write(given, locate_key)

    def locate(keypath: KeyPath) -> KeyLocation:
        if keypath[:1] == ("layers",):
            return KeyLocation(origin, written.find_origin(keypath))
        return KeyLocation(source, keypath)

    return validate(Architecture, {**rest, "layers": written.layers}, locate)
