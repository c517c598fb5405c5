"""Vega-Lite's JavaScript for a page, kept on disk: bundling it takes 1.4 s of CPU time."""

from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path

from grids.reading.errors import InputError
from grids.reading.textfile import write_text

EXPORTS = "window.vegaEmbed = vegaEmbed;"


def read_library() -> str:
    """Return the library, to stand inside a script element."""
    folder: Path = user_cache_path("paradl") / "pages"
    # The package brings Vega-Lite with it, so its version names what is in the bundle.
    path = folder / f"vega-{version('vl-convert-python')}.js"
    if path.exists():
        return path.read_text(encoding="utf-8")
    from vl_convert import javascript_bundle  # 30 MB, which nothing but a page needs

    library = javascript_bundle(EXPORTS).replace("</script", "<\\/script")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(library, path)
    except (OSError, InputError):
        pass  # no place to keep it: the next page bundles it anew
    return library
