"""Placements by another hand: the best of all, and a replay event by event.

From docs/placement.md alone, without arrays and without the solver. Operators are numbers in an
order in which they can run; a tensor is (maker, takers, bytes).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

Tensors = Sequence[tuple[int, Sequence[int], float]]
Delay = Callable[[int, int, float], float]  # from a device to another one, of so many bytes


def brute_force(
    forward: Sequence[float],
    backward: Sequence[float],
    tensors: Tensors,
    devices: int,
    delay: Delay,
    fits: Callable[[Sequence[int]], bool] = lambda placement: True,
) -> float | None:
    """The least time of a step of all placements and orders [s]; None: no placement fits."""
    orders = list(list_orders(len(forward), tensors))
    best = None
    for placement in product(range(devices), repeat=len(forward)):
        if not fits(placement):
            continue
        step = 0.0
        for durations in (forward, backward):
            step += min(play_order(order, durations, tensors, placement, delay) for order in orders)
        best = step if best is None else min(best, step)
    return best


def list_orders(count: int, tensors: Tensors) -> Iterator[tuple[int, ...]]:
    """Every order in which operators can run."""
    makers = [{maker for maker, takers, _ in tensors if place in takers} for place in range(count)]

    def extend(order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(order) == count:
            yield order
        for number in range(count):
            if number not in order and makers[number] <= {*order}:
                yield from extend((*order, number))

    return extend(())


def play_order(
    order: Sequence[int],
    durations: Sequence[float],
    tensors: Tensors,
    placement: Sequence[int],
    delay: Delay,
) -> float:
    """How long a pass takes if each device runs its operators in this order."""
    free: dict[int, float] = {}
    ends: dict[int, float] = {}
    for position in order:
        here = placement[position]
        begin = free.get(here, 0.0)
        for maker, takers, size in tensors:
            if position in takers:
                begin = max(begin, ends[maker] + delay(placement[maker], here, size))
        free[here] = ends[position] = begin + durations[position]
    return max(ends.values())


def replay_step(
    forward: Sequence[float],
    backward: Sequence[float],
    tensors: Tensors,
    placement: Sequence[int],
    orders: tuple[Sequence[int], Sequence[int]],
    delay: Delay,
) -> float:
    """When a step ends, played forward in time, the backward pass as it is: events and messages.

    orders: in which devices begin their operators, of the forward and of the backward pass.
    """
    messages = [
        (maker, device, [taker for taker in takers if placement[taker] == device], size)
        for maker, takers, size in tensors
        for device in sorted({placement[taker] for taker in takers})
    ]
    # Forward, a maker's message is for several takers; backward, theirs is one for the maker.
    there = [((maker,), tuple(some), size) for maker, _, some, size in messages]
    back = [(tuple(some), (maker,), size) for maker, _, some, size in messages]
    time = _play(forward, there, placement, orders[0], delay, 0.0)
    return _play(backward, back, placement, orders[1], delay, time)


def replay_micro_batches(
    steps: Sequence[tuple[Sequence[float], Sequence[float], Tensors]],
    placement: Sequence[int],
    orders: tuple[Sequence[int], Sequence[int]],
    delay: Delay,
) -> float:
    """When a step ends whose micro-batches overlap: all forward passes, then all backward passes.

    steps: forward and backward times and tensors of each micro-batch; orders: as of a step, of
    operator i of micro-batch k as k n + i.
    """
    count = len(placement)
    forward = [time for times, _, _ in steps for time in times]
    backward = [time for _, times, _ in steps for time in times]
    tensors = [
        (number * count + maker, [number * count + taker for taker in takers], size)
        for number, (_, _, some) in enumerate(steps)
        for maker, takers, size in some
    ]
    return replay_step(forward, backward, tensors, [*placement] * len(steps), orders, delay)


def _play(
    durations: Sequence[float],
    messages: Sequence[tuple[tuple[int, ...], tuple[int, ...], float]],
    placement: Sequence[int],
    order: Sequence[int],
    delay: Delay,
    begin: float,
) -> float:
    """When a pass ends that begins then: the next event first, until all have run.

    A message leaves when all of its senders have ended, and its receivers wait for it.
    """
    queues = {
        device: [position for position in order if placement[position] == device]
        for device in placement
    }
    running: dict[int, tuple[float, int]] = {}
    under_way: list[tuple[float, int]] = []  # when it comes, number of the message
    sent: set[int] = set()
    come: set[int] = set()
    ended: set[int] = set()
    now = begin
    while len(ended) < len(durations):
        for number, (senders, receivers, size) in enumerate(messages):
            if number not in sent and {*senders} <= ended:
                sent.add(number)
                here, to = placement[senders[0]], placement[receivers[0]]
                under_way.append((now + delay(here, to, size), number))
        come |= {number for time, number in under_way if time <= now}
        under_way = [job for job in under_way if job[0] > now]
        for device, queue in queues.items():
            if device not in running and queue:
                needed = {n for n, (_, takers, _) in enumerate(messages) if queue[0] in takers}
                if needed <= come:
                    values = queue.pop(0)
                    running[device] = (now + durations[values], values)
        done = [device for device, (time, _) in running.items() if time <= now]
        if done:
            ended |= {running.pop(device)[1] for device in done}
            continue  # what it sends may come at once
        events = [time for time, _ in running.values()] + [time for time, _ in under_way]
        assert events, "everything waits"
        now = min(events)
    return now
