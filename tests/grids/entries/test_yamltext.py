"""Entries as YAML: the text reads back, and explains each key."""

import re

from cases import systems
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paradl.grids.entries.connections import Connection
from paradl.grids.entries.systems import Contention, Level, ProcessingElement, System
from paradl.grids.entries.yamltext import format_entry
from paradl.grids.reading.yamlfile import read_nodes

SMALLEST = System.model_validate(
    {
        "name": "small",
        "pe": {
            "name": "PE",
            "device": "none",
            "peak_flops": "1 TFLOP/s",
            "efficiency": 1,
            "memory_capacity": "0.1 kB",
            "memory_bandwidth": "1.0000000000000002 GB/s",
        },
        "pes_per_node": 4096,
        "links_per_node": 1,
        "levels": [{"name": "all", "pes": 4096, "latency": 0, "bandwidth": "1e-20 B/s"}],
    }
)


def read_system(text: str) -> System:
    """Read the machine of a file's text."""
    _, data = read_nodes(text)
    assert isinstance(data, dict)
    return System.from_definition(data)


TEXTS = st.text(st.characters(exclude_categories=("Cc", "Cs")))  # as a file may have them


@settings(max_examples=30, deadline=None)
@given(systems(), TEXTS, st.lists(TEXTS, max_size=2))
@example(SMALLEST, "1e9", ["1e9: # two", "true", "- [x"])
def test_any_machine_reads_back_from_its_file(system: System, title: str, sources: list[str]):
    named = system.model_copy(update={"title": title, "source": tuple(sources)})
    text = format_entry(named, "")
    assert text.isascii()
    again = read_system(text)
    assert again == named
    assert again.definition() == named.definition()


def test_every_digit_is_written():
    text = format_entry(SMALLEST, "")
    assert "memory_bandwidth: 1.0000000000000002 GB/s" in text
    assert "memory_capacity: 100.0 B" in text
    assert "pes: 4096, oversubscription: 1.0, latency: 0 s, bandwidth: 1e-20 B/s}" in text
    assert read_system(text) == SMALLEST


def test_what_a_machine_may_have_stands_in_comments():
    """Uncommented, each line can be read."""
    optional = ("tensor_peaks", "precision", "software", "size", "input_rate", "staging")
    lines = format_entry(SMALLEST, "").splitlines()
    for n, line in enumerate(lines):
        if line.strip().startswith(tuple(f"# {key}:" for key in optional)):
            lines[n] = line.replace("# ", "", 1)
    system = read_system("\n".join(lines))
    assert set(optional[1:]) <= system.model_fields_set
    assert "tensor_peaks" in system.pe.model_fields_set


def test_every_key_is_explained():
    lines = format_entry(SMALLEST, "").splitlines()
    for form in (System, ProcessingElement):
        for key in form.model_fields:
            (*_, n) = (n for n, line in enumerate(lines) if re.match(rf" *(# )?{key}:", line))
            assert lines[n - 1].strip().startswith("# "), key
    for key in (*Level.model_fields, *Connection.model_fields, *Contention.model_fields):
        assert any(line.startswith(f"#   {key}: ") for line in lines), key
