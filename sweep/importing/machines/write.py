"""Imported machines and networks as YAML files to read and edit, with a tag behind each value."""

from collections.abc import Sequence
from pathlib import Path

from grids.entries.yamltext import format_entry
from grids.reading.textfile import expect_another, expect_folder, write_text
from sweep.importing.machines.machine import ImportedMachine

HEAD = (
    "Written by `paradl system import`: edit it. measured: a log states it; fitted: to a log's "
    "rows; data sheet: as the catalogue's machine with this GPU; assumed: check it."
)


def expect_output(path: Path, inputs: Sequence[Path]) -> None:
    """InputError: the file cannot be written, or would replace what it is made of."""
    expect_folder(path)
    for source in inputs:
        expect_another(path, source)


def write_system(imported: ImportedMachine, path: Path) -> None:
    """Write the machine's file."""
    write_text(format_entry(imported.system, HEAD, notes=imported.tags), path)
