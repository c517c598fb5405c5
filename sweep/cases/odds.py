"""Odds of times: probabilities by the distribution that their percentiles have."""

from scipy.special import stdtr, stdtrit

from kernels.names.stored import FREEDOM


def find_odds(spreads: float) -> float:
    """Return the probability of a logarithm at most so many spreads above its expected value."""
    return float(stdtr(FREEDOM, spreads))


def find_spreads(odds: float) -> float:
    """Return the number of spreads that is not exceeded with this probability."""
    return float(stdtrit(FREEDOM, odds))
