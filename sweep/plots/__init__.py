"""Pictures of answers: a file per picture, with its data and its drawing; stacked bars share one.

They need matplotlib, which a plain install of paradl lacks: import this package only to draw.

To add one: sweep/plots/NAME.py with `describe_NAME` (its data as plain arrays) and a `@styled`
`draw_NAME`, which takes `make_axes` and `add_legend` of figures.py, so that texts find room, or
another `Bars` in stacks.py; a method in plots.py; a command in sweep/cli/pictures.py; its command
in docs/gallery.md, which `python docs/console.py docs/gallery.md` draws. Look at it in grey, too.
Test: tests/sweep/plots/test_NAME.py, it agrees with the cube, and no texts overlap at three
sizes.
"""

from paradl.sweep.errors import expect_libraries

expect_libraries("pictures", ("matplotlib",), "plot")
