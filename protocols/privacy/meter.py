"""Meter of the budget that one agent has spent, in running sums: nothing is composed anew while the event loop runs."""

from __future__ import annotations

import math

from .accounting import Charge
from .budget import Budget
from .composition import remaining_delta, three_bounds
from .filters import SLACK, filter_of, gaussian_cost


class Meter:
    """Running sums of one agent's claimed parameters, and whether one more charge fits a budget."""

    __slots__ = ("budget", "cost", "drift", "limit", "logs", "others", "precision", "square", "total")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.total = self.drift = self.square = self.logs = self.precision = 0.0
        self.others = 0
        filtered = budget.delta > 0 and budget.by in ("gaussian", "verified", "zcdp", "renyi")
        self.cost, limit = filter_of(budget.by, budget.epsilon, budget.delta) if filtered else (gaussian_cost, 0.0)
        self.limit = limit * SLACK

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
        cost = self.cost(charge._replace(multiplier=charge.claimed_multiplier))
        if cost == math.inf:
            self.others += times
        else:
            self.precision += times * cost

    def fits(self) -> bool:
        """True if the charges that were added are within the budget."""
        budget = self.budget
        if self.limit and not self.others:
            return self.precision <= self.limit
        if budget.by in ("gaussian", "zcdp", "renyi"):
            return False
        slack = remaining_delta(budget.delta, self.logs)
        if slack is None:
            return False
        if self.total <= budget.epsilon * SLACK:
            return True
        bounds = three_bounds(self.total, self.drift, max(self.square, 0.0), slack)
        return budget.by != "basic_composition" and min(bounds) <= budget.epsilon * SLACK
