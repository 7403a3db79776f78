"""Why theorem 1 of Liu, Johansson and Shi (2022) does not protect: run me, or read me.

An observer knows all records of an agent but one, and hears every message. What he can subtract leaves the perturbed
subgradients: the record in question moves one of them by up to 2 L, whenever it is drawn.
"""

from __future__ import annotations

import math

from hushnet.protocols.algorithms.subgradient_noise import verified_epsilon


def facts(q: int, epochs: int = 3, epsilon: float = 1.0, delta: float = 0.01) -> dict[str, float]:
    """What the theorem claims at L = 1 and T = epochs * q, and what holds."""
    rounds = epochs * q
    sigma = math.sqrt(12 * rounds * math.log(1 / delta)) / (q * epsilon)
    shift = 2 / sigma  # of a message, in standard deviations of its noise, when the record is drawn
    drawn = 1 - (1 - 1 / q) ** rounds
    noticed = 0.5 * math.erfc((math.sqrt(2 * math.log(rounds / 0.01)) - shift) / math.sqrt(2))
    return {
        "sigma": sigma,
        "shift": shift,
        "drawn": drawn,
        "detected": drawn * noticed,  # by a threshold that false alarms cross with probability below .01
        "allowed": math.exp(epsilon) * 0.01 + delta,
        "verified": verified_epsilon(sigma / 2, rounds, 1 / q, delta),
    }


if __name__ == "__main__":
    for size in (20_000, 50):
        print(f"q = {size}: " + ", ".join(f"{name} {number:.4g}" for name, number in facts(size).items()))
