"""Synthetic ratings with the shape of MovieLens-100K, for runs without the real data; their name says so."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from pydantic import Field, model_validator

from ..errors import FieldError
from ..parameters import NotNegative, Size
from .extent import Extent, Files
from .outline import Outline
from .ratings import RatingParameters, Ratings, rating_extent, rating_task
from .task import Task
from .task_names import STAND_IN
from .task_registry import TASKS

# Mean and variance of the number of ratings a user has in MovieLens-100K (20 to 737, mean 106, deviation 101),
# matched by a beta distribution on that range.
SKEW = (0.53, 3.9)


@final
@TASKS.register
class SyntheticRatings(RatingParameters):
    """Synthetic ratings (low rank plus noise, 1 to 5): a stand-in for MovieLens-100K of the same shape."""

    kind: Literal["synthetic_ratings"]
    draws_data: ClassVar[bool] = True
    target: ClassVar[str] = "personal"
    users: Size = 943
    """Number of users, each an agent."""
    items: Size = 1682
    """Number of items."""
    ratings: list[Size] = Field(default=[20, 737], min_length=2, max_length=2)
    """Fewest and most ratings of a user; most users are near the fewest."""
    rank: Size = 5
    """Rank of the tastes beyond the users' and items' means."""
    noise: NotNegative = 0.8
    """Standard deviation of a rating around its user's taste, before rounding."""

    @model_validator(mode="after")
    def _ordered(self) -> SyntheticRatings:
        low, high = self.ratings
        if not low <= high <= self.items:
            raise FieldError(f"must be ordered and at most the number of items, {self.items}", "ratings")
        return self

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        return Outline(self.kind, "squared", "rmse", self.users, profiles=True, bounded=self.bounded)

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task from its parameters."""
        low, high = self.ratings
        ratings = self.users * (low + (high - low) * SKEW[0] / sum(SKEW))
        drawn = 8 * self.users * self.items  # every user's order of the items
        return rating_extent(self, self.users, self.items, ratings, drawn)

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Draw ratings and make the task."""
        return rating_task(
            self,
            self._draw(rng),
            name=f"{STAND_IN} MovieLens-100K",
            notes={"source": f"synthetic, rank {self.rank}, noise {self.noise:g}"},
            rng=rng,
        )

    def _draw(self, rng: np.random.Generator) -> Ratings:
        """Ratings round(mean_u + mean_i + taste_u . trait_i + noise), within 1 to 5; popular items are rated more."""
        low, high = self.ratings
        counts = low + np.rint((high - low) * rng.beta(*SKEW, size=self.users)).astype(np.int64)
        popularity = rng.permutation(1.0 / (np.arange(self.items) + 0.05 * self.items))
        user_means = rng.normal(3.5, 0.45, size=self.users)
        item_means = rng.normal(0.0, 0.5, size=self.items)
        tastes = rng.normal(0.0, 0.5, size=(self.users, self.rank))
        traits = rng.normal(0.0, 1.0 / np.sqrt(self.rank), size=(self.items, self.rank))
        # The items with the earliest of independent exponential times: a draw without replacement by popularity.
        items = [np.argsort(rng.exponential(1.0 / popularity), kind="stable")[:count] for count in counts]
        users = np.repeat(np.arange(self.users), counts)
        rated = np.concatenate(items)
        scores = user_means[users] + item_means[rated] + np.einsum("rk,rk->r", tastes[users], traits[rated])
        scores = scores + self.noise * rng.standard_normal(len(users))
        values = np.clip(np.rint(scores), 1.0, 5.0)
        return Ratings(users, rated, values, list(range(self.users)), self.items)
