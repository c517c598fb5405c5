"""The record of benchmarks: a measurement replaces its earlier rows."""

from dataclasses import replace

import pytest

from benchmarks.record import Machine, record_reports
from benchmarks.report import Report, Row, at_most

ORDER = ["first", "second"]


@pytest.fixture
def machine() -> Machine:
    return replace(Machine.here(), date="2026-11-24T10:00+00:00", load=1.5)


def list_rows(path):
    table = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def make_report(name, value):
    return Report(name, "", (Row("wait", value, "s", 2.0, "nothing", (at_most(value, 3, "s"),)),))


def test_a_measurement_replaces_its_rows_and_no_others(tmp_path, machine):
    path = tmp_path / "RESULTS.md"
    path.write_text("# History\n\n| what | goal |\n| --- | --- |\n| old | none |\n")
    record_reports(path, machine, [make_report("second", 4.0)], ORDER)
    record_reports(path, machine, [make_report("first", 1.0)], ORDER)
    later = replace(machine, date="2026-11-25T10:00+00:00", load=0.0)
    record_reports(path, later, [make_report("second", 2.0)], ORDER)
    first, second = list_rows(path)
    assert (first[0], first[2], first[-2:]) == ("first", "1 s", ["1.5", "2026-11-24"])
    assert (second[0], second[2], second[-2:]) == ("second", "2 s", ["0.0", "2026-11-25"])
