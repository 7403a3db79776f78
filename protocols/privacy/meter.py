"""Meter of the budget that one agent has spent, in running sums: nothing is composed anew while the event loop runs."""

from __future__ import annotations

import math

from .accounting import Charge
from .budget import Budget
from .composition import remaining_delta, three_bounds
from .filters import SLACK, gaussian_limit


class Meter:
    """Running sums of one agent's claimed parameters, and whether one more charge fits a budget.

    Parameters
    ----------
    budget : Budget
    """

    __slots__ = ("budget", "drift", "limit", "logs", "others", "precision", "square", "total")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.total = self.drift = self.square = self.logs = self.precision = 0.0
        self.others = 0
        curve = budget.delta > 0 and budget.by in ("gaussian", "verified")
        self.limit = gaussian_limit(budget.epsilon, budget.delta) * SLACK if curve else 0.0

    @property
    def state(self) -> tuple[float, ...]:
        """All that a further charge's fate depends on."""
        return self.total, self.drift, self.square, self.logs, self.precision, self.others

    def take(self, charge: Charge) -> bool:
        """Add a charge if it fits."""
        self.add(charge)
        if self.fits():
            return True
        self.add(charge, -1)
        return False

    def add(self, charge: Charge, times: int = 1) -> None:
        """Add a charge so many times, whether it fits or not; -1 takes it back."""
        eps = min(charge.claimed_epsilon, 1e150)
        self.total += times * eps
        self.drift += times * eps * math.tanh(eps / 2)
        self.square += times * eps * eps
        self.logs += times * math.log1p(-charge.claimed_delta)
        multiplier = charge.kind.gaussian_multiplier(charge.claimed_multiplier)
        if multiplier is None:
            self.others += times
        else:
            self.precision += times * max(multiplier, 1e-150) ** -2

    def fits(self) -> bool:
        """True if the charges that were added are within the budget."""
        budget = self.budget
        if self.limit and not self.others:
            return self.precision <= self.limit
        if budget.by == "gaussian":
            return False
        slack = remaining_delta(budget.delta, self.logs)
        if slack is None:
            return False
        if self.total <= budget.epsilon * SLACK:
            return True
        bounds = three_bounds(self.total, self.drift, max(self.square, 0.0), slack)
        return budget.by != "basic_composition" and min(bounds) <= budget.epsilon * SLACK
