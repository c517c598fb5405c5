"""A cube's answers as one self-contained page.

`write_report` can be imported without the libraries of the extra `report`: `help(paradl)` does.
"""

from paradl.sweep.errors import expect_libraries


def expect_report_libraries() -> None:
    """RunError: libraries that come with an extra of paradl are not installed."""
    expect_libraries("reports", ("matplotlib", "vl_convert"), "report")
