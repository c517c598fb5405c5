"""Strategies can be told apart: by the colour-blind, and where there are no colours."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from paradl.grids.entries.strategy_words import MEANING
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.names.terms import TERMS
from paradl.sweep.plots.looks import (
    LOOKS,
    MEMORY_LOOKS,
    TERM_LOOKS,
    VARIANTS,
    choose_ink,
    choose_looks,
    measure_lightness,
)

# Linear RGB to what is seen of it: Machado, Oliveira and Fernandes, "A Physiologically-based Model
# for Simulation of Color Vision Deficiency", IEEE TVCG 2009, table of severity 1.
SIGHTS = {
    "full": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Linear RGB to CIE XYZ, IEC 61966-2-1; the white of D65.
XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750]]
XYZ += [[0.0193339, 0.1191920, 0.9503041]]
WHITE = [0.95047, 1.0, 1.08883]


def to_lab(colour: str, sight: str = "full") -> np.ndarray:
    """CIE L*a*b* of `#RRGGBB` as one sees it."""
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(SIGHTS[sight]) @ linear, 0, 1)
    ratio = (np.array(XYZ) @ seen) / WHITE
    root = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    x, y, z = root
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_every_strategy_has_a_look():
    """In one cube all of a catalogue's strategies can be told apart, by line and by colour."""
    looks = choose_looks(list(MEANING)).values()
    assert len({(look.marker, str(look.dash), look.colour) for look in looks}) == len(MEANING)
    known = [(look.marker, str(look.dash)) for look in LOOKS.values()]
    assert len({*known}) == len(known)


def test_in_grey_strategies_differ_in_lightness():
    lightness = sorted(to_lab(look.colour)[0] for look in LOOKS.values())
    assert np.diff(lightness).min() > 5.5
    # From the ink to what still stands out on white.
    assert lightness[0] == 0
    assert lightness[-1] < 90


@pytest.mark.parametrize("sight", SIGHTS)
def test_the_colour_blind_tell_strategies_apart(sight):
    labs = [to_lab(look.colour, sight) for look in LOOKS.values()]
    # 2.3 is the least difference that is seen at all (Mahy et al., 1994).
    assert min(np.linalg.norm(one - other) for one, other in combinations(labs, 2)) > 5.5


def test_areas_differ_in_their_hatches():
    hatches = [look.hatch for name, look in LOOKS.items() if look.hatch]
    assert len({*hatches}) == len(hatches) == len(LOOKS) - 2  # all but serial and data


def test_the_hue_is_a_strategy_whatever_its_settings():
    labels = ["data", *(f"data+filter:group={group}" for group in (2, 4, 8, 16, 32, 64, 128))]
    looks = choose_looks(labels)
    for label in labels[1:]:
        # A paler one is on the way from the strategy's colour to white.
        towards = np.array(to_rgb(looks[label].colour)) - to_rgb(LOOKS["data+filter"].colour)
        white = np.array([1.0, 1, 1]) - to_rgb(LOOKS["data+filter"].colour)
        assert np.linalg.norm(np.cross(towards, white)) < 0.01
    result = {(looks[label].marker, str(looks[label].dash)) for label in labels}
    assert len(result) == len(labels)
    assert len({looks[label].hatch for label in labels[1:]}) == len(labels) - 1
    assert len(VARIANTS) == 6


def test_names_leave_out_what_is_searched():
    looks = choose_looks(["data", "data+filter:group=best", "data+pipeline:group=4,segments=best"])
    assert [look.name for look in looks.values()] == [
        "data",
        "data+filter",
        "data+pipeline:group=4",
    ]
    alike = choose_looks(["data+filter", "data+filter:group=best"])
    assert [look.name for look in alike.values()] == [*alike]


def test_what_is_no_strategy_has_a_look_of_its_own():
    looks = choose_looks(["data", "2-way", "4-way"])
    assert looks["2-way"] != looks["4-way"]
    assert looks["2-way"].colour not in {one.colour for one in LOOKS.values()}


def test_ink_is_read_on_every_colour():
    for look in LOOKS.values():
        ink = {"black": 0.0, "white": 1.0}[choose_ink(look.colour)]
        lighter, darker = sorted((ink, measure_lightness(look.colour)))[::-1]
        assert (lighter + 0.05) / (darker + 0.05) > 4.5  # WCAG 2.1, contrast of text


def choose_term_looks(terms):
    return {name: TERM_LOOKS[name] for name in terms if name != "hidden_communication"}


@pytest.mark.parametrize(
    "looks", [choose_term_looks(TERMS), choose_term_looks(LAYOUT_TERMS), MEMORY_LOOKS]
)
def test_parts_are_told_apart_in_grey(looks):
    result = {(one["facecolor"], one.get("hatch")) for one in looks.values()}
    # The paper's parameters and the machine's weights are never in one picture.
    assert len(result) == len({*looks} - {"parameters"})
    plain = [one["facecolor"] for one in looks.values() if not one["hatch"]]
    for one, other in pairwise(dict.fromkeys(plain)):
        assert abs(to_lab(one)[0] - to_lab(other)[0]) > 8
