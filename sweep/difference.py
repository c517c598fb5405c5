"""Where two definitions of a sweep differ, in words."""

SHOWN = 3


def difference(stored: object, asked: object) -> str:
    """The first differences, as `key: stored value -> asked value`; empty where there are none."""
    found = list(_differences("", stored, asked))
    more = f" (and {len(found) - SHOWN} more)" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more


def _differences(key: str, stored: object, asked: object) -> list[str]:
    if isinstance(stored, dict) and isinstance(asked, dict):
        keys = sorted(set(stored) | set(asked))
        return [
            line
            for each in keys
            for line in _differences(_join(key, each), stored.get(each), asked.get(each))
        ]
    return [] if stored == asked else [f"{key}: {_short(stored)} in the store, {_short(asked)} now"]


def _join(key: str, part: str) -> str:
    return f"{key}.{part}" if key else part


def _short(value: object) -> str:
    """A value in a line: entries by name, long lists by their ends."""
    if value is None:
        return "nothing"
    if isinstance(value, list):
        names = [
            str(each.get("name", each)) if isinstance(each, dict) else str(each) for each in value
        ]
        if len(names) > 8:
            names = [*names[:3], "...", *names[-3:]]
        return "[" + ", ".join(names) + "]"
    return str(value)
