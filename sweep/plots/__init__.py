"""Pictures of answers: a file for each, with what it shows and how it is drawn.

They need matplotlib, which a plain install of paradl lacks: import this room only to draw.
"""

from importlib.util import find_spec

from sweep.errors import RunError

if find_spec("matplotlib") is None:
    raise RunError("pictures need matplotlib; install paradl with its extra: pip install '.[plot]'")
