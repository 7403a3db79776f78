"""Evidence from a replay's runs that noise and samples are distributed as their releases state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .noise_seen import gathered
from .noise_tests import Check, checks
from .samples_seen import Witness, sampling_doubt

LEVEL = 1e-6
"""Probability, at most, with which a protocol without a fault is refused for its noise or its samples in one proof."""
STAGES = 4
"""Small worlds and own world, each about noise and about samples; each has an equal part of the level."""
ENOUGH = 100
"""Numbers of noise below which little is known of their distribution."""


def doubt(small: Sequence[Witness], own: Sequence[Witness] = ()) -> str:
    """Describe how noise or samples deviate from what their releases state; empty if no test rejects them.

    Beside witnesses of an own world, those of small worlds only add to what these show.
    """
    share = LEVEL / STAGES
    parts = [list(own), [*small, *own]] if own else [list(small)]
    for part in parts:
        found = _noise_doubt(part, share / len(parts))
        if found:
            return found
    return sampling_doubt(parts[-1], share)


def _noise_doubt(witnesses: Sequence[Witness], level: float) -> str:
    every = checks(gathered(one.recording for one in witnesses), rng=np.random.default_rng(0))
    failed = [check for check in every if check.p * len(every) < level]
    if not failed:
        return ""
    worst = min(failed, key=lambda check: (_clearness(check), check.p))
    return f"noise is not what releases say: {_words(worst)}"


def _clearness(check: Check) -> int:
    """Rank of what a test says about a mistake: which draw it is in, how large it is, or only that there is one."""
    if check.name in ("repeated numbers", "numbers without noise"):
        return 0
    return 1 if check.name.startswith("scale of") else 2


def _words(check: Check) -> str:
    return f"{check.name}: {check.said} ({check.count} numbers; so by chance with probability {check.p:.1g})"


def seen(small: Sequence[Witness], own: Sequence[Witness]) -> tuple[list[str], list[str]]:
    """List, in words, the noise and samples that were tested, and those that were not."""
    every, looked, missed = [*small, *own], [], []
    numbers = sum(draw.noisy.size for one in every for draws in one.recording.draws.values() for draw in draws)
    looked.append(f"{numbers} numbers of noise")
    if 0 < numbers < ENOUGH:
        missed.append(f"distribution of the noise, of which {numbers} numbers say little")
    releases = sum(one.sampled for one in every)
    taken = [one for witness in every for some in witness.samples for one in some]
    if releases and not any(one.moved.any() for one in taken):
        missed.append("samples, for no changed row moves a release over one")
    elif releases:
        count, charged = (sum(float(getattr(one, name).sum()) for one in taken) for name in ("moved", "shares"))
        looked.append(f"a changed row in {count:.0f} samples, {charged:.1f} charged for")
    return looked, missed
