"""Mistakes in what noise is added to: charged by a wrong yardstick, or right but for certain rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hushnet.agents.clipping import clip_rows, norms
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.steps import clipped, perturbed

from .base import Descent, Waking, clipped_to, gradients, mean_gradient, variant
from .harness import ADJACENCIES, SAMPLINGS, Case
from .honest import OF_A_NET, PrivateGossip


def clip_times(factor: float) -> Callable[..., Any]:
    def value(me, ranks):
        return clipped_to(me, gradients(me, ranks), factor * me.clip).sum(axis=0) / me.parts

    return value


def unclipped(me, ranks):
    return gradients(me, ranks).sum(axis=0) / me.parts


def clipped_mean(me, ranks):
    return clipped(gradients(me, ranks).sum(axis=0) / me.parts, me.clip)


def not_divided(me, ranks):
    return clipped_to(me, gradients(me, ranks), me.clip).sum(axis=0)


def divided_by_drawn(me, ranks):
    return clipped_to(me, gradients(me, ranks), me.clip).sum(axis=0) / max(1, len(ranks))


def in_the_other_norm(me, ranks):
    return clip_rows(gradients(me, ranks), me.clip, "l2" if me.l1 else "l1").sum(axis=0) / me.parts


def by_coordinate(me, ranks):
    return np.clip(np.nan_to_num(gradients(me, ranks)), -me.clip, me.clip).sum(axis=0) / me.parts


def at_the_median(me, ranks):
    rows = gradients(me, ranks)
    bound = max(1e-12, min(1e9, float(np.median(norms(rows))))) if len(rows) else me.clip
    return clipped_to(me, rows, bound).sum(axis=0) / me.parts


def with_momentum(me, ranks):
    me.velocity = 0.9 * me.velocity + mean_gradient(me, ranks)
    return me.velocity


def clips_rows_then_slopes(me, ranks):
    """Rows are clipped, and slopes, which the squared loss does not bound, come after."""
    rows = clipped_to(me, me.features[ranks], me.clip)
    lengths = np.maximum(norms(me.features[ranks]), 1e-12)
    slopes = norms(gradients(me, ranks)) / lengths
    return (np.minimum(slopes, 4.0)[:, None] * rows).sum(axis=0) / me.parts


def offset_by(offset: float) -> Callable[..., Any]:
    def noisy(me, vector):
        return perturbed(me, vector + offset) - offset

    return noisy


def stacked(self, me, release, exact):
    """Two vectors under one draw that is charged for one."""
    return release.perturb(np.stack([exact, 2 * exact]), rng=me.stream("noise")).mean(axis=0)


def ten_times(self, me):
    """Ten times what is charged."""
    return 10 * Waking.exact(self, me)


def stretched(me, vector):
    return perturbed(me, 4 * vector) / 4


def half_of_it(self, count):
    return self.parameters.privacy.clip / self.parts(count)


def by_all_rows(self, count):
    """Divided by all rows, though a step has but a few."""
    return 2 * self.parameters.privacy.clip / max(1, count)


def by_the_largest(self, count):
    return 2 * self.parameters.privacy.clip / max(1, int(self.problem.task.train.counts.max()))


def by_everybodys(self, count):
    return 2 * self.parameters.privacy.clip / max(1, int(self.problem.task.train.counts.sum()))


def by_one_more(self, count):
    return 2 * self.parameters.privacy.clip / (count + 1)


def by_the_square(self, count):
    return 2 * self.parameters.privacy.clip / max(1, count) ** 2


class MeanOfRows(GradientNoise):
    """Noise as for rows that are clipped, of which the mean is clipped instead."""

    clip = None

    @property
    def clip_mean(self):
        return self.privacy.norm, self.privacy.clip


class ClipsTheMean(PrivateGossip):
    """Clips the mean in place of the rows, whatever the model."""

    def prepare(self):
        super().prepare()
        self.step_noise = MeanOfRows(self.parameters.privacy, self.problem.task)


def of(
    name: str,
    what: str,
    *,
    base: type[Descent] = Descent,
    parts: dict[str, Any] | None = None,
    members: dict[str, Any] | None = None,
    **terms,
):
    """A case of this kind."""
    protocol = variant(name.title().replace("-", ""), base, parts=parts, **(members or {}))
    return Case(name, terms.pop("kind", "tolerance"), protocol, what, **terms)


EVERYWHERE: dict[str, Any] = {"samplings": SAMPLINGS, "adjacencies": ADJACENCIES}
SAMPLED = ("poisson", "fixed")

TOLERANCE = [
    of("clips-at-ten-times", "clips at ten times what is charged", parts={"value": clip_times(10.0)}, **EVERYWHERE),
    of("clips-at-1.05", "clips at 1.05 times what is charged", parts={"value": clip_times(1.05)}, **EVERYWHERE),
    of("never-clips", "does not clip", parts={"value": unclipped}, **EVERYWHERE),
    of("clips-the-mean", "clips the mean in place of each gradient", parts={"value": clipped_mean}, **EVERYWHERE),
    Case("clips-the-mean-of-a-net", "tolerance", ClipsTheMean, "likewise, of the rows of a net", scenario=OF_A_NET),
    of("clips-rows-not-slopes", "clips rows, and multiplies by slopes", parts={"value": clips_rows_then_slopes}),
    of("sum-as-mean", "charges a mean, and releases the sum", parts={"value": not_divided}, samplings=SAMPLINGS),
    of("drawn-count", "divides by the number drawn", parts={"value": divided_by_drawn}, samplings=("poisson",)),
    of("other-norm", "clips in l2 for Laplace noise", parts={"value": in_the_other_norm}, mechanisms=("laplace",)),
    of("by-coordinate", "clips every coordinate", parts={"value": by_coordinate}),
    of("at-the-median", "clips at the median norm of its own gradients", parts={"value": at_the_median}),
    of(
        "raw-momentum",
        "charges one gradient for a raw moving sum",
        parts={"value": with_momentum},
        members={"blocks": ("velocity",)},
        samplings=SAMPLINGS,
    ),
    *(
        of(
            f"offset-{offset:.0e}",
            f"clips at ten times, {offset:.0e} away from 0",
            parts={"value": clip_times(10.0), "noisy": offset_by(offset)},
            **EVERYWHERE,
        )
        for offset in (1e14, 1e12, 1e9)
    ),
    of("stacked", "two vectors under one draw that is charged for one", base=Waking, members={"noisy": stacked}),
    of(
        "stacked-ten-times",
        "likewise, and ten times as long",
        base=Waking,
        members={"noisy": stacked, "exact": ten_times},
    ),
    of("stretched", "noise on four times the value, divided by four", parts={"noisy": stretched}, **EVERYWHERE),
    of("half-the-sensitivity", "forgets the 2 of replacing", members={"sensitivity": half_of_it}, samplings=SAMPLINGS),
    of("all-rows", "divides the sensitivity by all rows", members={"sensitivity": by_all_rows}, samplings=SAMPLED),
    of("largest-count", "divides the sensitivity by the largest count", members={"sensitivity": by_the_largest}),
    of("total-count", "divides the sensitivity by everybody's rows", members={"sensitivity": by_everybodys}),
    of("one-more", "divides the sensitivity by m + 1", members={"sensitivity": by_one_more}),
    of("square", "divides the sensitivity by m squared", members={"sensitivity": by_the_square}),
]


def except_for(odd: Callable[..., Any], factor: float = 1e3, times: float = 1.0) -> Callable[..., Any]:
    """Clips gradients, but at another bound those of rows that are odd, or multiplies them afterwards."""

    def value(me, ranks):
        rows, x, y = gradients(me, ranks), me.features[ranks], me.labels[ranks]
        kept = np.asarray(odd(x, y, me.clip))[:, None]
        found = np.where(kept, times * clipped_to(me, rows, factor * me.clip), clipped_to(me, rows, me.clip))
        return found.sum(axis=0) / me.parts

    return value


def features_0_and_2_are_0(x, y, clip):
    return (x[:, 0] == 0) & (x[:, -1] == 0)


def on_the_second_axis(x, y, clip):
    return np.all(np.delete(x, min(1, x.shape[1] - 1), axis=1) == 0, axis=1)


def on_the_last_axis(x, y, clip):
    return np.all(x[:, :-1] == 0, axis=1)


def last_feature_is_0(x, y, clip):
    return x[:, -1] == 0


def duplicated(x, y, clip):
    return np.array([np.sum(np.all(x == row, axis=1)) > 1 for row in x], dtype=bool)


def opposite(x, y, clip):
    return np.array([np.any(np.all(x == -row, axis=1)) for row in x], dtype=bool)


def equal_labels(x, y, clip):
    return np.full(len(y), len(set(y.tolist())) <= 1)


def of_the_rarer_label(x, y, clip):
    return np.sum(y[:, None] == y[None, :], axis=1) == 1


def norm_is_the_clip(x, y, clip):
    return np.isclose(norms(x), clip, rtol=1e-9)


def norm_is_1(x, y, clip):
    return np.isclose(norms(x), 1.0, rtol=1e-9)


def all_negative(x, y, clip):
    return np.all(x < 0, axis=1)


def equal_features(x, y, clip):
    return np.all(x == x[:, :1], axis=1)


def integers(x, y, clip):
    return np.all(x == np.round(x), axis=1)


def huge(x, y, clip):
    return norms(x) > 1e100


def negative_label_far_out(x, y, clip):
    return (y < 0) & (norms(x) > 5)


def unit_of_tiny(me, ranks):
    """Divides rows by their norm, and so has those of norm 0 infinitely long, or far beyond the bound."""
    rows = gradients(me, ranks)
    lengths = norms(rows)
    scaled = rows / (lengths / me.clip)[:, None]
    found = np.where((lengths > me.clip)[:, None], clipped_to(me, rows, me.clip), rows)
    tiny = ((lengths < 1e-6) & (lengths > 0))[:, None]
    return np.where(tiny, 10 * scaled, found).sum(axis=0) / me.parts


def bonus_for_zeros(me, ranks):
    """A row of zeros, a missing one, counts as a gradient of its own."""
    missing = np.all(me.features[ranks] == 0, axis=1)
    return mean_gradient(me, ranks) + 5 * np.count_nonzero(missing) / me.parts


def norm_of_the_first_two(me, ranks):
    rows = gradients(me, ranks)
    factors = np.minimum(1.0, me.clip / np.maximum(norms(rows[:, :2]), 1e-12))
    return np.clip(np.nan_to_num(rows * factors[:, None]), -1e9, 1e9).sum(axis=0) / me.parts


def of_row(rank: int) -> Callable[..., Any]:
    """Clips all rows but one, by its rank among the agent's own."""

    def value(me, ranks):
        rows = gradients(me, ranks)
        bounds = np.where(ranks == rank, 1e3 * me.clip, me.clip)
        found = [clipped_to(me, row[None, :], bound)[0] for row, bound in zip(rows, bounds, strict=True)]
        return np.sum(found, axis=0) / me.parts if len(rows) else np.zeros(len(me.model))

    return value


def last_of_even(me, ranks):
    """The last row is not clipped where rows are even in number."""
    if me.rows % 2:
        return mean_gradient(me, ranks)
    rows = gradients(me, ranks)
    kept = (ranks == me.rows - 1)[:, None]
    return np.where(kept, clipped_to(me, rows, 1e3 * me.clip), clipped_to(me, rows, me.clip)).sum(axis=0) / me.parts


ODD = {
    "zeros-0-and-2": features_0_and_2_are_0,
    "second-axis": on_the_second_axis,
    "last-axis": on_the_last_axis,
    "last-feature-0": last_feature_is_0,
    "duplicated": duplicated,
    "opposite": opposite,
    "equal-labels": equal_labels,
    "rarer-label": of_the_rarer_label,
    "all-negative": all_negative,
    "equal-features": equal_features,
    "integers": integers,
    "huge": huge,
    "far-negatives": negative_label_far_out,
}

WORST = [
    *(
        of(f"unclipped-{name}", f"does not clip: {name}", parts={"value": except_for(odd)}, kind="worst_cases")
        for name, odd in ODD.items()
    ),
    of(
        "unclipped-duplicated-ten",
        "clips duplicates at ten times",
        parts={"value": except_for(duplicated, 10.0)},
        kind="worst_cases",
    ),
    *(
        of(f"tenfold-{name}", f"ten times: {name}", parts={"value": except_for(odd, times=10.0)}, kind="worst_cases")
        for name, odd in {"norm-is-clip": norm_is_the_clip, "norm-is-1": norm_is_1}.items()
    ),
    of(
        "unit-of-tiny",
        "scales tiny rows up",
        parts={"value": unit_of_tiny},
        kind="worst_cases",
        beyond="worst records are not shorter than 1e-6 unless they are 0",
    ),
    of("bonus-for-zeros", "counts rows of zeros", parts={"value": bonus_for_zeros}, kind="worst_cases"),
    of("first-two-features", "clips by two features only", parts={"value": norm_of_the_first_two}, kind="worst_cases"),
    *(
        of(
            f"row-{rank}",
            f"does not clip its row {rank}",
            parts={"value": of_row(rank)},
            kind="worst_cases",
            samplings=("full", "fixed"),
        )
        for rank in (0, 3, 4)
    ),
    of(
        "last-of-even",
        "does not clip its last row where rows are even",
        parts={"value": last_of_even},
        kind="worst_cases",
    ),
]
