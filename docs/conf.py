"""Documentation as a site: sphinx-build -W docs docs/_build/html; the reference is generated."""

import sys
from pathlib import Path
from shutil import copyfile
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from reference_pages import write_reference

project = "paradl"
# The second brings MathJax along, so that formulas need no network either.
extensions = ["myst_parser", "sphinx-mathjax-offline"]
myst_enable_extensions = ["dollarmath"]
exclude_patterns = ["_build"]
smartquotes = False  # `--sel` is an option
myst_heading_anchors = 4  # links such as transformers.md#time
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "logo": {"text": "paradl"},
}
html_show_copyright = False
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["site.css"]
html_sidebars = {"index": [], "tutorial": [], "gallery": []}  # they have nothing to list

write_reference(Path(__file__).parent / "reference")


def setup(app: Any) -> None:
    """Serve the source of each page beside it, where `llms.txt` links to."""
    app.connect("build-finished", copy_sources)


def copy_sources(app: Any, error: Exception | None) -> None:
    """Copy the pages' sources into the site."""
    for name in app.env.found_docs if error is None else ():
        copyfile(Path(app.srcdir, f"{name}.md"), Path(app.outdir, f"{name}.md"))
