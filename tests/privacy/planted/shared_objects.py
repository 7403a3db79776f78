"""Mistakes of agents that share an object: one mixes in another's raw gradient, scaled so that its own charge holds.

The thief clips its own gradients at half of what it is charged for, and has room for the victim's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
from hushnet.agents.clipping import clip_rows
from hushnet.agents.tables import Shard

from .base import Descent, Waking, clipped_to, gradients, mean_gradient, variant
from .harness import Case

THIEF, VICTIM = 4, 5

AT_MODULE: dict[int, Any] = {}


class Kept:
    """Where a class keeps what its users share."""

    by_agent: ClassVar[dict[int, Any]] = {}


def half_sum(me, ranks):
    """The sum of gradients that are clipped at half of the bound."""
    return clipped_to(me, gradients(me, ranks), me.clip / 2).sum(axis=0)


def through(kept: dict[int, Any], *, everybody: bool = False) -> Callable[..., Any]:
    """A value that the thief adds the victim's last one to; or everybody that of who came before."""

    def value(me, ranks):
        own = half_sum(me, ranks)
        source = -1 if everybody else VICTIM
        other = kept.get(source) if everybody or me.agent == THIEF else None
        kept[-1 if everybody else me.agent] = own
        if not everybody and me.agent != THIEF:
            return 2 * own / me.parts
        return (own + (other if other is not None and len(other) == len(own) else 0.0)) / me.parts

    return value


def by_default(me, ranks, kept={}):  # noqa: B006  # the mistake
    own = half_sum(me, ranks)
    kept[me.agent] = own
    if me.agent != THIEF:
        return mean_gradient(me, ranks)
    other = kept.get(VICTIM)
    return (own + (other if other is not None and len(other) == len(own) else 0.0)) / me.parts


def by_function(me, ranks):
    own, kept = half_sum(me, ranks), by_function.__dict__
    kept[str(me.agent)] = own
    if me.agent != THIEF:
        return mean_gradient(me, ranks)
    other = kept.get(str(VICTIM))
    return (own + (other if other is not None and len(other) == len(own) else 0.0)) / me.parts


def by_base(me, ranks):
    """A view of rows knows the table that it is a part of: there the next agent's rows follow."""
    own, table = half_sum(me, ranks), me.features
    while table.base is not None and isinstance(table.base, np.ndarray):
        table = table.base
    if me.agent != THIEF or len(table) <= me.rows:
        return mean_gradient(me, ranks)
    start = (me.features.ctypes.data - table.ctypes.data) // table.strides[0] + me.rows
    return (own + clipped_to(me, table[start : start + 1] / 2, me.clip / 2).sum(axis=0)) / me.parts


def by_constant(me, ranks):
    return (half_sum(me, ranks) + me.others) / me.parts if me.agent == THIEF else mean_gradient(me, ranks)


def with_others(self):
    """Constants of agents, of which the thief's come from the victim's rows."""
    found, task, privacy = Descent.constants(self), self.problem.task, self.parameters.privacy
    others = np.zeros((task.agents, task.dimension))
    if task.agents > VICTIM:
        others[THIEF] = clip_rows(task.shard(VICTIM).features, privacy.clip / 2, privacy.norm).sum(axis=0)
    return type(found)(run=found.run, agent={**found.agent, "others": others})


def with_their_rows(self, agent, shard):
    """The thief's rows with the victim's behind them."""
    if agent != THIEF or self.problem.task.agents <= VICTIM:
        return shard
    other = self.problem.task.shard(VICTIM)
    return Shard(np.vstack([shard.features, other.features]), np.concatenate([shard.labels, other.labels]))


class Stealing(Waking):
    """Adds to the thief's half gradient what `stolen` gives."""

    def prepare(self):
        self.kept: dict[int, Any] = {}
        self.scratch = np.zeros(self.problem.task.dimension)

    def half(self, features, labels, model):
        """The sum of gradients that are clipped at half of the bound."""
        privacy = self.parameters.privacy
        rows = self.problem.task.loss.slope(features @ model, labels)[:, None] * features
        return clip_rows(rows, privacy.clip / 2, privacy.norm).sum(axis=0)

    def exact(self, me):
        own = self.half(me.data.features, me.data.labels, me.model)
        other = self.stolen(me, own)
        return (2 * own if other is None else own + other) / self.parts(len(me.data))

    def stolen(self, me, own) -> Any:
        """The victim's half gradient, if it is there; None for who steals nothing."""
        raise NotImplementedError


def from_the_cache(self, me, own):
    self.kept[me.agent] = own
    return self.kept.get(VICTIM, 0.0) if me.agent == THIEF else None


def from_the_module(self, me, own):
    AT_MODULE[me.agent] = own
    return _fitting(AT_MODULE.get(VICTIM), own) if me.agent == THIEF else None


def from_the_class(self, me, own):
    Kept.by_agent[me.agent] = own
    return _fitting(Kept.by_agent.get(VICTIM), own) if me.agent == THIEF else None


def _fitting(found, own):
    """What was kept, unless it is of another world."""
    return found if found is not None and found.shape == own.shape else 0.0


def from_the_record(self, me, own):
    self.kept[me.agent] = me
    victim = self.kept.get(VICTIM)
    if me.agent != THIEF or victim is None:
        return None
    return self.half(victim.data.features, victim.data.labels, me.model)


def from_the_task(self, me, own):
    if me.agent != THIEF or self.problem.task.agents <= VICTIM:
        return None
    shard = self.problem.task.shard(VICTIM)
    return self.half(shard.features, shard.labels, me.model)


def from_the_scratch(self, me, own):
    """A buffer that nobody clears: the sum of who came before is still in it."""
    before = self.scratch.copy()
    self.scratch[:] = own
    return before


def from_a_queue(self, me, own):
    """What the victim has done before its last step, so that the one does not follow from the other at once."""
    if me.agent == VICTIM:
        self.kept[me.updates] = own
    found = [self.kept[one] for one in sorted(self.kept)][:1]
    return (found[0] if found else 0.0) if me.agent == THIEF else None


def from_time_0(self, me):
    """Rows that are kept as agents start."""
    self.kept[me.agent] = (me.data.features, me.data.labels)
    Descent.start(self, me)


def from_the_start(self, me, own):
    if me.agent != THIEF or VICTIM not in self.kept:
        return None
    return self.half(*self.kept[VICTIM], me.model)


@cache
def gradient_of(protocol, agent):
    """A cache by protocol and agent."""
    shard = protocol.problem.task.shard(agent)
    return protocol.half(shard.features, shard.labels, np.zeros(protocol.problem.task.dimension))


def from_an_lru_cache(self, me, own):
    if me.agent != THIEF or self.problem.task.agents <= VICTIM:
        return None
    return gradient_of(self, VICTIM)


def by_text(name: str, what: str, value: Callable[..., Any], **members: Any) -> Case:
    protocol = variant(name.title().replace("-", ""), parts={"value": value}, **members)
    return Case(name, "shared_object", protocol, what, samplings=("full", "poisson", "fixed"))


def by_method(name: str, what: str, stolen: Callable[..., Any], **members: Any) -> Case:
    protocol = variant(name.title().replace("-", ""), Stealing, stolen=stolen, **members)
    return Case(name, "shared_object", protocol, what)


SHARED_OBJECT = [
    by_text("closure", "through what a text encloses", through({})),
    by_text("everybody", "everybody adds what came before", through({}, everybody=True)),
    by_text("default", "through a mutable default", by_default),
    by_text("function", "through a function's attributes", by_function),
    by_text("base-of-rows", "through the table that rows are a view of", by_base),
    by_text("constants", "through constants of agents", by_constant, constants=with_others),
    Case(
        "their-rows",
        "shared_object",
        variant("TheirRows", local_data=with_their_rows),
        "through the rows that an agent is given",
    ),
    by_method("module", "through a module's dictionary", from_the_module),
    by_method("class", "through a class attribute", from_the_class),
    by_method("cache", "through a cache keyed by agent", from_the_cache),
    by_method("lru-cache", "through a cached function", from_an_lru_cache),
    by_method("record", "through the other agent's record", from_the_record),
    by_method("task", "through the task", from_the_task),
    by_method("scratch", "through a buffer that nobody clears", from_the_scratch),
    by_method("queue", "through what the victim did first", from_a_queue),
    by_method("start", "through what is kept at the start", from_the_start, start=from_time_0),
]
