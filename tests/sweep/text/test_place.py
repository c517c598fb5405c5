"""A placement's picture: what is drawn where."""

from paradl.sweep.plots.hybrid import draw_placement


def answer(**more):
    """Two devices: one computes all the time, the other in the second quarter of each pass."""
    rows = [
        ("busy", 0, 0.0, 4.0, 4.0, 8.0),
        ("short", 1, 1.0, 2.0, 6.0, 7.0),
    ]
    times = ("forward_start", "forward_end", "backward_start", "backward_end")
    return {
        "graph": "toy $x$",
        "system": "here",
        "devices": 2,
        "pes": [0, 5],
        "step_time": 8.0,
        "forward_time": 4.0,
        "speedup": 1.25,
        "proven": False,
        "gap": 0.1,
        "operators": [
            {
                "operator": name,
                "micro_batch": 0,
                "device": device,
                **dict(zip(times, seconds, strict=True)),
            }
            for name, device, *seconds in rows
        ],
        "messages": [{"from": 0, "to": 5, "sent": 0.5, "come": 1.0}],
    } | more


def test_the_picture_has_a_lane_for_each_device():
    axes = draw_placement(answer()).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["PE 0", "PE 5"]
    spans = {
        tuple(path.get_extents().intervalx.round(9))
        for group in axes.collections
        for path in group.get_paths()
    }
    assert {(0, 4), (4, 8), (1, 2), (6, 7)} <= spans  # and a message
    assert axes.get_xlabel() == "time since the iteration began [s]"
