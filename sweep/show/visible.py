"""Texts for a terminal, in which every character can be seen.

Names come from stores, CSV files and paths that others wrote. Printed as they are, an ESC in one
could clear the screen or rename its window, and a bidirectional override could reorder a message.
"""

import sys


def escape_invisible(text: str) -> str:
    """The text in one line: characters that no eye sees are escapes, such as `\\x1b` and `\\n`."""
    # Python's own notion of printable, in which a space is, and no other blank, control or format
    # character.
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def escape_lines(text: str) -> str:
    """The text of several lines, in each of which every character can be seen."""
    return "\n".join(map(escape_invisible, text.split("\n")))


def tell(message: str) -> None:
    """Print one message to stderr, which progress, notes and failures go to."""
    print(escape_lines(message), file=sys.stderr)
