"""Types of answers: the fields of each, with units and meanings.

To add a key: a field of the answer's type here, with unit and meaning; schema and heads of tables
follow. `EXPENDABLE` in sweep/text/tables.py: columns to drop first in a narrow terminal.
Test: tests/sweep/text/test_widths.py.
"""
