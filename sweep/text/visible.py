"""Text that is safe to print on a terminal: invisible characters become escapes.

Names come from stores, CSV files and paths that others wrote. Printed unchanged, an ESC could clear
the screen or rename its window, and a bidirectional override could reorder a message.
"""

import sys


def escape_invisible(text: str) -> str:
    """Return the text on one line, with escapes such as `\\x1b` and `\\n`."""
    # Python counts the space as printable, but no other blank, control or format character.
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def escape_lines(text: str) -> str:
    """Return the text with invisible characters escaped, and its line breaks kept."""
    return "\n".join(map(escape_invisible, text.split("\n")))


def tell(message: str) -> None:
    """Print a message on stderr, where progress, notes and failures go."""
    print(escape_lines(message), file=sys.stderr)
