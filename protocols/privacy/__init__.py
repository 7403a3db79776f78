"""Releases, by which protocols reveal their agents' data, and their cost in privacy.

A `Release` says what a message carries and with how much noise; the `Ledger` counts releases and refuses those beyond
an agent's `Budget`; `accounting` turns counts into epsilon, as a paper claims it and as it can be proved; `Privacy`
holds the parameters that a scenario may set and `plan` spreads them over an agent's releases.
"""

from __future__ import annotations

from .accounting import Charge, Histogram, claimed, verified
from .budget import Budget, Privacy, Target
from .composition import advanced, advanced_composition, basic_composition, gaussian, three_way_bounds
from .ledger import Ledger
from .mechanisms import Release, draw_noise
from .plans import Plan, allocation_weights, plan

__all__ = [
    "Budget",
    "Charge",
    "Histogram",
    "Ledger",
    "Plan",
    "Privacy",
    "Release",
    "Target",
    "advanced",
    "advanced_composition",
    "allocation_weights",
    "basic_composition",
    "claimed",
    "draw_noise",
    "gaussian",
    "plan",
    "three_way_bounds",
    "verified",
]
