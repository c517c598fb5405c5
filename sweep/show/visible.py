"""Texts for a terminal, without invisible characters.

Names come from stores, CSV files and paths that others wrote. Printed as they are, an ESC in one
could clear the screen or rename its window, and a bidirectional override could reorder a message.
"""

import sys


def escape_invisible(text: str) -> str:
    """The text in one line, with invisible characters as escapes, such as `\\x1b` and `\\n`."""
    # For Python a space is printable; other blanks, control and format characters are not.
    return "".join(
        mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text
    )


def escape_lines(text: str) -> str:
    """The text with invisible characters as escapes, except for its ends of lines."""
    return "\n".join(map(escape_invisible, text.split("\n")))


def tell(message: str) -> None:
    """Print a message to stderr, where progress, notes and failures go."""
    print(escape_lines(message), file=sys.stderr)
