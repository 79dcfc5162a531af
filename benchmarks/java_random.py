"""java.util.Random in columns: many generators at once, or many values of one.

Its algorithm (48 bits, linear congruential) is part of Java's specification.
"""

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

_MULTIPLIER, _INCREMENT, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


def first_below(seeds: npt.NDArray[np.int64], bound: int) -> npt.NDArray[np.int64]:
    """`new Random(seed).nextInt(bound)` of every seed."""
    state = (seeds.astype(np.uint64) ^ np.uint64(_MULTIPLIER)) & np.uint64(_MASK)
    result = np.full(len(seeds), -1, dtype=np.int64)
    waiting = np.arange(len(seeds))
    while len(waiting):
        state[waiting] = _next(state[waiting])
        bits = (state[waiting] >> np.uint64(17)).astype(np.int64)
        if bound & (bound - 1) == 0:
            result[waiting] = (bound * bits) >> 31
            break
        value = bits % bound
        accepted = bits - value + (bound - 1) < 1 << 31
        result[waiting[accepted]] = value[accepted]
        waiting = waiting[~accepted]
    return result


def doubles(seed: int, count: int) -> npt.NDArray[np.float64]:
    """The first values of `nextDouble()` of one generator."""
    states = _states((seed ^ _MULTIPLIER) & _MASK, 2 * count)
    high, low = states[0::2] >> np.uint64(22), states[1::2] >> np.uint64(21)
    words = (high << np.uint64(27)) + low
    return words.astype(np.float64) * 2.0**-53


def exponential(seed: int, count: int) -> npt.NDArray[np.float64]:
    """Exponentially distributed values with mean 1."""
    return -np.log1p(-doubles(seed, count))


def _next(state: Words) -> Words:
    return (state * np.uint64(_MULTIPLIER) + np.uint64(_INCREMENT)) & np.uint64(_MASK)


def _states(start: int, count: int) -> Words:
    """The states after a start: each doubling jumps as far ahead as is known."""
    states = np.array([(start * _MULTIPLIER + _INCREMENT) & _MASK], dtype=np.uint64)
    multiplier, increment = _MULTIPLIER, _INCREMENT
    while len(states) < count:
        ahead = states * np.uint64(multiplier) + np.uint64(increment)
        states = np.concatenate([states, ahead & np.uint64(_MASK)])
        increment = (increment * (multiplier + 1)) & _MASK
        multiplier = (multiplier * multiplier) & _MASK
    return states[:count]
