"""A cube's answers as one self-contained page.

RunError: libraries that come with an extra of paradl are not installed.
"""

from paradl.sweep.errors import expect_libraries

expect_libraries("reports", ("altair", "matplotlib", "vl_convert"), "report")
