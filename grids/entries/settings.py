"""Settings behind a name, such as `data+filter:group=8` or `dgx-h100:precision=tf32`."""

from grids.reading.errors import InputError, shorten


def split_settings(text: str, where: str, example: str) -> dict[str, str]:
    """The values of `key=value,...` by key, as written; InputError shows the example."""
    settings: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key in settings:
            raise InputError(
                f"expected key=value once each, got {shorten(item)}",
                where=where,
                advice=f"write it like {example!r}",
            )
        settings[key] = value
    return settings
