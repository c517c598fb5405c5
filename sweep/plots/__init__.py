"""Pictures of answers: one file per picture, with its data and its drawing.

They need matplotlib, which a plain install of paradl lacks: import this package only to draw.
"""

from importlib.util import find_spec

from sweep.errors import RunError

if find_spec("matplotlib") is None:
    raise RunError("pictures need matplotlib; install paradl with its extra: pip install '.[plot]'")
