"""Systems: quantities with units, nested levels."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from paradl.grids.entries.software import SOFTWARE
from paradl.grids.entries.systems import Contention, System
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError

SYSTEM: dict[str, Any] = {
    "name": "small",
    "pe": {
        "name": "V100",
        "device": "v100",
        "peak_flops": "15.7 TFLOP/s",
        "efficiency": 0.5,
        "memory_capacity": "16 GB",
        "memory_bandwidth": 900e9,
    },
    "pes_per_node": 4,
    "links_per_node": 2,
    "levels": [
        {"name": "node", "pes": 4, "latency": "9 us", "bandwidth": "50 GB/s"},
        {"name": "leaf", "pes": 68, "latency": "40.31 us", "bandwidth": "12.5 GB/s"},
    ],
}


def test_units_become_si() -> None:
    system = System.model_validate(SYSTEM)
    assert (system.pe.peak_flops, system.pe.memory_capacity) == (15.7e12, 16e9)
    assert (system.levels[1].latency, system.levels[1].bandwidth) == (40.31e-6, 12.5e9)
    assert system.staging is None
    assert system.contention == Contention(halo=1.0, split_gather=1.0)


def test_definition_rebuilds_it() -> None:
    system = System.model_validate(SYSTEM)
    assert System.from_definition(system.definition()) == system


def test_figures_of_odd_sizes_are_written_with_their_units() -> None:
    system = System.model_validate(
        changed(levels__1__bandwidth="25 B/s", pe__memory_capacity="1 kB")
    )
    definition: dict[str, Any] = system.definition()
    assert definition["levels"][1]["bandwidth"] == "25.0 B/s"
    assert definition["levels"][0]["bandwidth"] == 50e9
    assert System.from_definition(definition) == system


def changed(**changes: object) -> dict[str, Any]:
    """Return SYSTEM with changes; a__b: c changes b in a."""
    definition = deepcopy(SYSTEM)
    for path, value in changes.items():
        *parents, key = path.split("__")
        part = definition
        for parent in parents:
            part = part[int(parent)] if isinstance(part, list) else part[parent]
        part[key] = value
    return definition


@pytest.mark.parametrize(
    ("changes", "line", "message"),
    [
        ({"pe__memory_capacity": "16 GB/s"}, "pe.memory_capacity", "expected a value in B, got"),
        ({"pe__memory_bandwidth": 0}, "pe.memory_bandwidth", "expected greater than 0"),
        ({"pe__efficiency": 1.5}, "pe.efficiency", "expected less than or equal to 1"),
        ({"pe__peak_flop": 1}, "pe.peak_flop", "unknown key; did you mean 'peak_flops'?"),
        ({"levels__0__bandwidth": "50 GB"}, "levels.0.bandwidth", "expected a value in B/s, got"),
        ({"levels__1__pes": 4}, "", "levels:"),
        ({"levels__0__pes": 8}, "", "levels:"),
        ({"pe__memory_capacity": 32}, "pe.memory_capacity", "32 B is not a plausible memory"),
        ({"pe__watts": "700 kg"}, "pe.watts", "expected a value in W, got '700 kg'"),
        ({"pe__watts": 0}, "pe.watts", "expected greater than 0"),
        ({"pe__watts": 1e9}, "pe.watts", "write its unit"),
        ({"levels__1__latency": 40}, "levels.1.latency", "write its unit, such as '40 us'"),
        ({"name": "two\nlines"}, "name", "expected a name on one line, got 'two\\nlines'"),
        ({"name": "a" * 201}, "name", "string should have at most 200 characters, got 'aaaa"),
        ({"contention": {"halo": 0.5}}, "contention.halo", "expected greater than or equal to 1"),
        ({"links_per_node": True}, "links_per_node", "expected a number, got True"),
        ({"precision": "ampp"}, "precision", "unknown precision 'ampp'; did you mean 'amp'?"),
        ({"precision": 16}, "precision", "unknown precision 16; known: amp, bf16"),
        ({"precision": "amp"}, "", "write 'tensor_peaks: {amp: ... TFLOP/s}' under 'pe'"),
        ({"precision": "amp"}, "", "plain fp16 without any: 21.2 TFLOP/s on a P100"),
        ({"precision": "bf16", "pe__tensor_peaks": {"amp": 1e14}}, "", "only for fp32, amp; "),
        ({"pe__tensor_peaks": {"am": 1e14}}, "pe.tensor_peaks.am", "did you mean 'amp'?"),
        ({"pe__tensor_peaks": {"amp": 125}}, "pe.tensor_peaks.amp", "is not a plausible speed"),
        ({"name": "small:precision=amp"}, "", "name:"),
        ({"name": "small:software=plain"}, "", "name:"),
        ({"name": "small:memory=32 GB"}, "", "name: expected one that says memory=16 GB"),
        ({"software": "dpp"}, "software", "unknown software 'dpp'; did you mean 'ddp'?"),
        (
            {"levels__1__oversubscription": 0.5},
            "oversubscription",
            "expected greater than or equal to 1",
        ),
        ({"size": 69}, "", "size:"),
        ({"size": 0}, "size", "expected greater than 0"),
        ({"input_rate": 0}, "input_rate", "expected greater than 0"),
        ({"input_rate": "3 GB/s"}, "input_rate", "expected a number, got '3 GB/s'"),
    ],
)
def test_mistakes(tmp_path: Path, changes: dict[str, object], line: str, message: str) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(changed(**changes)))
    with pytest.raises(InputError) as error:
        find("system", str(path), Path())
    assert line in str(error.value)
    assert message in str(error.value)


def test_a_wrong_unit_is_shown_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(changed(pe__memory_capacity="16 GB/s"), sort_keys=False))
    with pytest.raises(InputError) as error:
        find("system", str(path), Path())
    assert str(error.value) == (
        f"{path}:7: pe.memory_capacity: expected a value in B, got '16 GB/s'; "
        "write it like '16 GiB'"
    )


PEAKS = {"tf32": "156 TFLOP/s", "amp": "312 TFLOP/s"}


def test_a_file_without_a_precision_is_written_as_ever() -> None:
    """Stores of such files can be resumed: their definitions have no new keys."""
    system = System.model_validate(SYSTEM)
    assert (system.precision, system.peak) == ("fp32", 15.7e12)
    assert (system.most_pes, system.input_rate) == (68, None)
    assert set(system.definition()) == {"title", "source", "contention", *SYSTEM}
    pe = system.definition()["pe"]
    assert isinstance(pe, dict)
    assert set(pe) == set(SYSTEM["pe"])


@pytest.mark.parametrize(
    ("precision", "peak"), [("fp32", 15.7e12), ("tf32", 156e12), ("amp", 312e12)]
)
def test_the_peak_is_the_precisions(precision: str, peak: float) -> None:
    system = System.model_validate(changed(pe__tensor_peaks=PEAKS, precision=precision))
    assert system.peak == peak
    assert system.pe.peak_flops == 15.7e12
    definition = system.definition()
    assert definition["precision"] == precision
    assert System.from_definition(definition) == system


def test_size_and_input_rate_are_written_down() -> None:
    system = System.model_validate(changed(size=40, input_rate="3e3"))
    assert (system.most_pes, system.input_rate) == (40, 3000.0)
    assert System.from_definition(system.definition()) == system


def test_other_settings_are_in_the_name() -> None:
    system = System.model_validate(changed(pe__tensor_peaks=PEAKS, precision="amp"))
    other = system.with_settings({"precision": "tf32"})
    assert (other.name, other.precision, other.peak) == ("small:precision=tf32", "tf32", 156e12)
    assert other.machine == system.machine == "small"
    assert System.from_definition(other.definition()) == other
    # From there too, a label has the machine's name once.
    assert other.with_settings({"precision": "fp32"}).name == "small:precision=fp32"


def test_settings_are_told_in_one_order() -> None:
    system = System.model_validate(changed(pe__tensor_peaks=PEAKS))
    first = system.with_settings({"software": "plain"})
    assert (first.name, first.software) == ("small:software=plain", "plain")
    both = first.with_settings({"precision": "amp"})
    assert both.name == "small:precision=amp,software=plain"
    assert both == system.with_settings({"software": "plain", "precision": "amp"})
    assert both.machine == "small"
    assert System.from_definition(both.definition()) == both


def test_memory_is_set_like_the_precision() -> None:
    system = System.model_validate(changed(pe__tensor_peaks=PEAKS))
    other = system.with_settings({"memory": "24 GB"}).with_settings({"precision": "amp"})
    assert other.name == "small:precision=amp,memory=24 GB"
    assert other == system.with_settings({"memory": "24000 MB", "precision": "amp"})
    assert (other.machine, other.pe.memory_capacity) == ("small", 24e9)
    assert system.with_settings({"memory": "16 GB"}) == system


def test_power_has_a_unit() -> None:
    assert System.model_validate(SYSTEM).pe.watts is None
    for text, watts in (("700 W", 700), ("1.4 kW", 1400), (300, 300)):
        system = System.model_validate(changed(pe__watts=text))
        assert system.pe.watts == watts
        assert System.from_definition(system.definition()) == system


def test_levels_are_not_oversubscribed_unless_they_say_so() -> None:
    system = System.model_validate(changed(levels__0__oversubscription=2))
    assert [level.oversubscription for level in system.levels] == [2, 1]
    assert System.from_definition(system.definition()) == system


def test_the_precision_that_a_machine_has_changes_no_name() -> None:
    for definition in (SYSTEM, SYSTEM | {"precision": "fp32"}):
        system = System.model_validate(definition)
        again = system.with_settings({"precision": "fp32"})
        assert again == system
        assert again.definition() == system.definition()


def test_switches_are_in_the_name_unless_the_software_has_them() -> None:
    system = System.model_validate(SYSTEM)
    other = system.with_settings({"overlap_tensor": "off", "software": "megatron"})
    assert other.name == "small:software=megatron,overlap_tensor=off"
    assert not other.software_facts.layouts.overlap_tensor
    assert System.from_definition(other.definition()) == other
    both = other.with_settings({"messages": "tensors"})
    assert both.name == "small:software=megatron,overlap_tensor=off,messages=tensors"
    named = system.with_settings({"software": "megatron"})
    assert named.with_settings({"overlap_tensor": "on"}) == named
    assert named.software_facts == SOFTWARE["megatron"]
    in_file = System.model_validate(SYSTEM | {"switches": {"overlap_tensor": True}})
    assert in_file.with_settings({"overlap_tensor": "on"}) == in_file


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"overlap_tensor": "of"}, "unknown switch 'of'; did you mean 'off'"),
        ({"messages": "few"}, "'one', 'buckets', 'blocks' or 'tensors'"),
        ({"overlap_tensors": "off"}, "Extra inputs"),
        ({"overlap_experts": "on"}, "plain hides nothing"),
    ],
)
def test_wrong_switches_are_refused(switches: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        System.model_validate(SYSTEM | {"software": "plain", "switches": switches})
