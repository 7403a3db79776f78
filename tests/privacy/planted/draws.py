"""Mistakes in what is drawn: samples that are not drawn as declared, noise that is less than it is said to be."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from hushnet.agents.clipping import norms
from hushnet.protocols.privacy.mechanisms import WatchedStream
from hushnet.protocols.steps import draw_each, draw_rows, perturbed

from .base import BATCH, SHARE, Waking, drawn, gradients, variant
from .harness import ADJACENCIES, SAMPLINGS, Case


def everything(me):
    return np.arange(me.rows)


def first_rows(me):
    return np.arange(min(BATCH, me.rows))


def largest_rows(me):
    """The rows of the largest gradients, in place of some at random."""
    return np.argsort(-norms(gradients(me, np.arange(me.rows))), kind="stable")[:BATCH]


def by_size(me):
    """At random, but long rows more often."""
    weights = np.clip(np.nan_to_num(norms(me.features)), 1e-3, 1e6)
    order = np.argsort(weights, kind="stable")
    return order[draw_rows(me, me.rows)[:BATCH] // 2 + me.rows // 2] if me.rows > 1 else np.arange(me.rows)


def round_robin(me):
    return (me.updates * BATCH + np.arange(min(BATCH, me.rows))) % max(1, me.rows)


def of_epochs(me):
    """A permutation drawn once an epoch, gone through batch by batch."""
    steps = max(1, me.rows // BATCH)
    if me.updates % steps == 0:
        me.order[: me.rows] = draw_rows(me, me.rows)
    start = me.updates % steps * BATCH
    return me.order[: me.rows][start : start + BATCH].astype(np.int64)


def by_the_tick(me):
    """By a generator whose seed everybody knows."""
    return np.random.default_rng(me.tick).permutation(me.rows)[:BATCH]


def by_the_agent(me):
    return np.random.default_rng(me.agent).permutation(me.rows)[:BATCH]


def once_drawn(me):
    """The first step's sample in all steps, though every step draws one."""
    ranks = drawn(me)
    if me.updates == 0:
        me.order[: len(ranks)] = ranks
        me.order[-1] = len(ranks)
    return me.order[: int(me.order[-1])].astype(np.int64)


def in_pairs_of_steps(me):
    """A sample that two steps share."""
    ranks = drawn(me)
    if me.updates % 2 == 0:
        me.order[: len(ranks)] = ranks
        me.order[-1] = len(ranks)
    return me.order[: int(me.order[-1])].astype(np.int64)


def twice_the_rate(me):
    return draw_each(me, 2 * SHARE)


def a_little_more(me):
    return draw_each(me, 1.5 * SHARE)


def twice_as_many(me):
    return draw_rows(me, 2 * BATCH)


def with_the_first(me):
    """A Poisson sample that the first row is always in."""
    return np.union1d(draw_each(me, SHARE), np.arange(min(1, me.rows)))


def neighbouring_rows(me):
    """Rows enter in blocks of two: who knows one knows of the other."""
    pairs = np.flatnonzero(draw_each_pair(me))
    return pairs[pairs < me.rows]


def draw_each_pair(me):
    chosen = np.zeros(me.rows + 1, dtype=bool)
    for rank in draw_each(me, SHARE):
        if rank % 2 == 0:
            chosen[[rank, rank + 1]] = True
    return chosen


def best_of_two(me):
    """Draws two samples, and takes the one of the larger gradients."""
    one, other = drawn(me), drawn(me)
    sizes = [np.minimum(norms(gradients(me, ranks)), me.clip).sum() for ranks in (one, other)]
    return one if sizes[0] >= sizes[1] else other


def whole(rate: float) -> Callable[..., float]:
    def given(self, count):
        return rate

    return given


def by_the_largest_count(self, count):
    return BATCH / int(self.problem.task.train.counts.max())


def half_the_batch(self, count):
    return min(1.0, BATCH / 2 / max(1, count))


def with_order(self):
    """Blocks that also hold the ranks of a sample, and their number."""
    found, counts = Waking.layout(self), self.problem.task.train.counts
    return type(found)(agent={**found.agent, "order": int(counts.max()) + 2}, messages=found.messages)


def sampled(name: str, what: str, draw: Callable[..., Any] = drawn, *, samplings=("fixed",), members=None, **more):
    protocol = variant(name.title().replace("-", ""), parts={"draw": draw}, layout=with_order, **(members or {}))
    return Case(name, "samples", protocol, what, samplings=samplings, **more)


BOTH: dict[str, Any] = {"samplings": ("poisson",), "adjacencies": ADJACENCIES}

SAMPLES = [
    sampled(
        "full-as-5-percent",
        "all rows, declared as a sample of .05",
        samplings=("full",),
        adjacencies=ADJACENCIES,
        members={"rate": whole(0.05)},
    ),
    sampled(
        "full-as-a-half",
        "all rows, declared as a sample of .5",
        samplings=("full",),
        adjacencies=ADJACENCIES,
        members={"rate": whole(0.5)},
    ),
    sampled("full-as-Poisson", "all rows, though sums are divided as of a sample", everything, **BOTH),
    sampled("first-rows", "the first rows always", first_rows),
    sampled("largest-rows", "the rows of the largest gradients", largest_rows),
    sampled("by-size", "longer rows more often", by_size),
    sampled("round-robin", "rows in turn", round_robin),
    sampled("epochs", "a permutation once an epoch", of_epochs),
    sampled("by-the-tick", "by a seed that everybody knows", by_the_tick),
    sampled("by-the-agent", "by the agent's number", by_the_agent),
    sampled("one-sample", "one sample for all steps", once_drawn, samplings=("poisson", "fixed")),
    sampled(
        "one-sample-apart",
        "one sample for all steps, add-or-remove-one",
        once_drawn,
        samplings=("poisson",),
        adjacencies=("add-or-remove-one",),
    ),
    sampled("pairs-of-steps", "a sample for two steps", in_pairs_of_steps, samplings=("poisson", "fixed")),
    sampled("twice-the-rate", "twice the declared rate", twice_the_rate, **BOTH),
    sampled("half-more", "1.5 times the declared rate", a_little_more, **BOTH),
    sampled("twice-as-many", "twice as many rows as declared", twice_as_many),
    sampled("with-the-first", "the first row and some others", with_the_first, **BOTH),
    sampled("blocks-of-rows", "rows enter two by two", neighbouring_rows, **BOTH),
    sampled(
        "best-of-two",
        "the sample of larger gradients out of two",
        best_of_two,
        samplings=("poisson", "fixed"),
        beyond="a row takes part up to 1.7 times as often, by its gradient; in some 800 samples 1.3 times on average",
    ),
    sampled("rate-by-largest", "the rate of the largest agent", members={"rate": by_the_largest_count}),
    sampled("rate-of-a-half", "half the rate", members={"rate": half_the_batch}),
]


class Tampered:
    """A generator whose numbers are changed before anybody gets them."""

    def normal(self, *given, **named):
        return self.change(partial(super().normal, *given, **named))

    def laplace(self, *given, **named):
        return self.change(partial(super().laplace, *given, **named))

    def gamma(self, *given, **named):
        return self.change(partial(super().gamma, *given, **named))


def bits_of(rng: np.random.Generator) -> np.random.BitGenerator:
    """The inner state of a stream, which refuses to show it."""
    return np.random.Generator.bit_generator.__get__(rng)


def tampered(rng: np.random.Generator, change: Callable[..., Any]) -> np.random.Generator:
    """A stream that draws the same bits and changes what comes of them; watched, if it was."""
    kind = type("Stream", (Tampered, type(rng)), {"change": staticmethod(change)})
    own = np.random.Generator(bits_of(rng))
    return kind(own, rng.watcher) if isinstance(rng, WatchedStream) else kind(own)


def through(change: Callable[..., Any]) -> Callable[..., Any]:
    """Noise of a stream that is tampered with."""

    def noisy(self, me, release, exact):
        return release.perturb(exact, rng=tampered(me.stream("noise"), change))

    return noisy


def tenth(draw):
    return draw() / 10


def two_thirds(draw):
    return draw() / 1.5


def cut_off(draw):
    values = draw()
    bound = np.abs(values).mean()
    return np.clip(values, -bound, bound)


def rounded_to_0(draw):
    """Sparse: small numbers become 0."""
    values = draw()
    return np.where(np.abs(values) < np.abs(values).max(), 0.0, values)


def first_alone(draw):
    values = draw()
    return values * (np.arange(values.shape[-1]) == 0)


def one_for_all(draw):
    values = draw()
    return np.broadcast_to(values[..., :1], values.shape).copy()


def smallest_of_five(draw):
    return min((draw() for _ in range(5)), key=np.linalg.norm)


def never_negative(draw):
    return np.abs(draw())


def from_seed(seed: Callable[..., Any]) -> Callable[..., Any]:
    """Noise of a generator that begins anew in every step."""

    def noisy(self, me, release, exact):
        rng, own = me.stream("noise"), np.random.default_rng(seed(me))
        return release.perturb(exact, rng=WatchedStream(own, rng.watcher) if isinstance(rng, WatchedStream) else own)

    return noisy


def the_agent(me):
    return me.agent


def the_tick(me):
    return me.tick


def nothing(me):
    return 7


def the_pair_of_steps(me):
    return [me.agent, me.updates // 2]


def rewound(self, me, release, exact):
    """Every step begins with the bits of the first."""
    bits = bits_of(me.stream("noise"))
    bits.state = self.kept.setdefault(me.agent, bits.state)
    return release.perturb(exact, rng=me.stream("noise"))


def rewound_every_other(self, me, release, exact):
    bits = bits_of(me.stream("noise"))
    if me.updates % 2:
        bits.state = self.kept[me.agent]
    self.kept[me.agent] = bits.state
    return release.perturb(exact, rng=me.stream("noise"))


def of_agent_0(self, me, release, exact):
    """The bits of who came first, whoever comes."""
    bits = bits_of(me.stream("noise"))
    bits.state = self.kept.setdefault(me.updates, bits.state)
    return release.perturb(exact, rng=me.stream("noise"))


def of_the_neighbour(self, me, release, exact):
    """The bits with which a neighbour has begun its last step."""
    bits = bits_of(me.stream("noise"))
    known = [self.kept[one] for one in me.neighbours.tolist() if one in self.kept]
    self.kept[me.agent] = bits.state
    if known:
        bits.state = known[0]
    return release.perturb(exact, rng=me.stream("noise"))


def alike_twice(self, me, release, exact):
    """Two draws of a step, for the gradient and for half of it, of the same bits."""
    rng = me.stream("noise")
    bits = bits_of(rng)
    state = bits.state
    one = release.perturb(exact, rng=rng)
    bits.state = state
    return one - release.perturb(exact / 2, rng=rng)


def turned_round(self, me, release, exact):
    """Every other step takes away the noise that the step before has added."""
    bits = bits_of(me.stream("noise"))
    if me.updates % 2 == 0:
        self.kept[me.agent] = bits.state
        return release.perturb(exact, rng=me.stream("noise"))
    bits.state = self.kept[me.agent]
    return release.perturb(exact, rng=tampered(me.stream("noise"), negated))


def negated(draw):
    return -draw()


def of_half_the_scale(self, me, release, exact):
    """A release that is another one while it draws."""
    scale = release.scale
    object.__setattr__(release, "scale", scale / 2)
    noisy = release.perturb(exact, rng=me.stream("noise"))
    object.__setattr__(release, "scale", scale)
    return noisy


def repeated_by_cycle(self, me, release, exact):
    """Three noises in turn."""
    bits = bits_of(me.stream("noise"))
    bits.state = self.kept.setdefault((me.agent, me.updates % 3), bits.state)
    return release.perturb(exact, rng=me.stream("noise"))


def with_kept(self):
    self.kept: dict[Any, Any] = {}


def noise(name: str, what: str, noisy: Callable[..., Any], **more) -> Case:
    protocol = variant(name.title().replace("-", ""), Waking, noisy=noisy, prepare=with_kept)
    return Case(name, "noise", protocol, what, **more)


ADDITIVE = ("laplace", "gaussian")

NOISE = [
    noise("tenth", "a tenth of the noise", through(tenth)),
    noise("two-thirds", "two thirds of the noise", through(two_thirds)),
    noise("cut-off", "noise of bounded values", through(cut_off), mechanisms=ADDITIVE),
    noise("sparse", "noise on the coordinate that has the largest alone", through(rounded_to_0), mechanisms=ADDITIVE),
    noise("first-alone", "noise on the first coordinate alone", through(first_alone)),
    noise("one-for-all", "one number for all coordinates", through(one_for_all)),
    noise("smallest-of-five", "the smallest noise of five", through(smallest_of_five)),
    noise("never-negative", "noise that is never negative", through(never_negative)),
    noise("same-in-every-step", "the same noise in every step", rewound),
    noise("rewound", "every other step draws the noise of the step before", rewound_every_other),
    noise("three-in-turn", "three noises in turn", repeated_by_cycle),
    noise("seeded-by-agent", "noise by the agent's number", from_seed(the_agent)),
    noise("seeded-by-tick", "noise by a seed that everybody knows", from_seed(the_tick)),
    noise("seeded", "the same noise for everybody", from_seed(nothing)),
    noise("seeded-by-pairs", "noise that two steps share", from_seed(the_pair_of_steps)),
    noise("first-agents", "the noise of whoever came first", of_agent_0),
    noise("neighbours", "the noise of a neighbour's last step", of_the_neighbour),
    noise("alike-twice", "the same noise in two releases of a step", alike_twice),
    noise("turned-round", "every other noise cancels the one before", turned_round),
    noise("half-the-scale", "a release of half the scale while it draws", of_half_the_scale),
]


def subtracted(me, vector):
    """Takes nine tenths of the noise away again."""
    noisy = perturbed(me, vector)
    return vector + (noisy - vector) / 10


NOISE += [
    Case(
        "subtracted",
        "noise",
        variant("Subtracted", parts={"noisy": subtracted}),
        "takes nine tenths away again",
        samplings=SAMPLINGS,
        adjacencies=ADJACENCIES,
    ),
]
