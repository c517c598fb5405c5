"""Pictures of answers: one file per picture, with its data and its drawing.

They need matplotlib, which a plain install of paradl lacks: import this package only to draw.
"""

from paradl.sweep.errors import expect_libraries

expect_libraries("pictures", ("matplotlib",), "plot")
