"""Tests of bash, `[ $A -gt 8 ]`: whether they hold, as far as a script itself says."""

import operator
from fnmatch import fnmatchcase

NUMBERS = {f"-{name}": getattr(operator, name) for name in ("eq", "ne", "gt", "ge", "lt", "le")}
JOINTS = (("||", True), ("-o", True), ("&&", False), ("-a", False))


def judge_test(words: list[str]) -> bool | None:
    """Return whether a test holds; None if it depends on more than the script.

    What is not set, and so begins with a dollar, is empty.

    >>> judge_test(["8", "-gt", "4", "&&", "-n", "$NODES"])
    False
    """
    for sign, any_of in JOINTS:
        if sign in words:
            place = words.index(sign)
            first, second = judge_test(words[:place]), judge_test(words[place + 1 :])
            return first or second if any_of else first and second
    match words:
        case ["!", *rest]:
            holds = judge_test(rest)
            return None if holds is None else not holds
        case ["-z", value]:
            return not value or value.startswith("$")
        case ["-n", value]:
            return bool(value) and not value.startswith("$")
        case [left, sign, right] if "$" not in left + right:
            if sign in ("=", "==", "!="):
                return fnmatchcase(left, right) is (sign != "!=")
            if sign in NUMBERS and (left + right).isdecimal():
                return bool(NUMBERS[sign](int(left[:9]), int(right[:9])))
    return None
