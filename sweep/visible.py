"""What reaches a terminal: texts in which every character can be seen.

Names come from stores, CSV files and paths that others wrote. Printed as they are, an ESC in one
could clear the screen or rename its window, and a bidirectional override could reorder a message.
"""

import sys


def visible(text: str) -> str:
    """The text with what no eye sees as an escape, ESC as `\\x1b`; line ends and spaces stay."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode()
        for each in text
    )


def tell(message: str) -> None:
    """Print one message to stderr, which progress, notes and failures go to."""
    print(visible(message), file=sys.stderr)
