"""Mistakes that show in some worlds only, and those of agents or data that a replay leaves out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hushnet.agents.clipping import clip_rows
from hushnet.protocols.steps import post_processed

from .base import Descent, Waking, clipped_to, gradients, mean_gradient, variant
from .harness import Case

Test = Callable[..., Any]


def leaks_where(test: Test) -> dict[str, Any]:
    """Parts of a step that sends the mean of its rows along where a test holds."""

    def send(me):
        return me.model + 1e-3 * me.features.mean(axis=0) if test(me) else me.model

    return {"send": send}


def clips_not_where(test: Test) -> dict[str, Any]:
    """Parts of a step that clips at ten times where a test holds."""

    def value(me, ranks):
        bound = 10 * me.clip if test(me) else me.clip
        return clipped_to(me, gradients(me, ranks), bound).sum(axis=0) / me.parts

    return {"value": value}


def after_20_steps(me):
    return me.updates >= 20


def after_a_while(me):
    return me.now > 30


def in_large_graphs(me):
    return me.agents > 16


def in_graphs_of_12(me):
    return me.agents == 12


def of_many_neighbours(me):
    return me.degree >= 6


def of_five_neighbours(me):
    return me.degree == 5


def of_many_rows(me):
    return me.rows > 20


def of_middling_rows(me):
    return 14 < me.rows < 20


def in_many_dimensions(me):
    return len(me.model) > 6


def of_hinge_losses(me):
    return me.hinge > 0


def unheard_of(me):
    return me.updates >= 4 and me.degree > 0 and not me.was_heard.any()


def in_other_data(me):
    return me.other > 0


def with_facts(self):
    """Constants that say what world it is, from what is public in it."""
    found, task = Descent.constants(self), self.problem.task
    counts = task.train.counts
    facts = {"other": float(int(counts.sum()) % 4 == 2), "hinge": float(task.loss.name == "hinge")}
    return type(found)(run={**found.run, **facts}, agent=found.agent)


LONG: dict[str, Any] = {"updates": 60}


def by_world(name: str, what: str, test: Test, **more: Any) -> list[Case]:
    """A leak, and a sensitivity that is wrong, in some of the worlds of a sweep."""
    found = []
    for how, parts in (("leaks", leaks_where(test)), ("unclipped", clips_not_where(test))):
        protocol = variant(f"{name}-{how}".title().replace("-", ""), parts=parts, constants=with_facts)
        found.append(Case(f"{name}-{how}", "world", protocol, f"{how} {what}", **more))
    return found


def swept(path: str, *values: Any, at: Any = None) -> dict[str, Any]:
    """A sweep whose last point, or another one, has the mistake."""
    return {"scenario": {"sweep": {path: list(values)}}, "harmed": (path, values[-1] if at is None else at)}


ONE = ("gaussian",)
WORLD = [
    *by_world(
        "late-steps",
        "after 20 steps of a long run",
        after_20_steps,
        privacy=LONG,
        scenario={"stop.time": 40},
        mechanisms=("laplace", "gaussian", "gamma"),
    ),
    *by_world(
        "longer-runs",
        "after 20 steps, in the longer runs",
        after_20_steps,
        privacy=LONG,
        mechanisms=("laplace", "gaussian", "gamma"),
        **swept("stop.time", 6, 40),
    ),
    *by_world(
        "later",
        "after time 30, in the longer runs",
        after_a_while,
        privacy=LONG,
        mechanisms=ONE,
        **swept("stop.time", 8, 12, 16, 20, 40),
    ),
    *by_world("large-graphs", "in graphs of more than 16 agents", in_large_graphs, **swept("task.agents", 8, 20)),
    *by_world(
        "middling-graphs",
        "in graphs of 12 agents, between others",
        in_graphs_of_12,
        mechanisms=ONE,
        **swept("task.agents", 8, 12, 16, at=12),
    ),
    *by_world(
        "many-neighbours",
        "for agents of 6 neighbours or more",
        of_many_neighbours,
        **swept("topology.kind", "ring", "complete"),
    ),
    *by_world(
        "five-neighbours",
        "for agents of 5 neighbours",
        of_five_neighbours,
        mechanisms=ONE,
        scenario={"topology": {"kind": "random_regular", "degree": 2}, "sweep": {"topology.degree": [2, 5, 6]}},
        harmed=("topology.degree", 5),
    ),
    *by_world(
        "many-rows",
        "of agents with many rows",
        of_many_rows,
        scenario={"task.samples": [6, 9], "sweep": {"task.samples": [[6, 9], [30, 40]]}},
        harmed=("task.samples", [30, 40]),
    ),
    *by_world(
        "middling-rows",
        "of agents with 15 to 19 rows",
        of_middling_rows,
        mechanisms=ONE,
        scenario={"sweep": {"task.samples": [[6, 9], [15, 19], [30, 40]]}},
        harmed=("task.samples", [15, 19]),
    ),
    *by_world("many-dimensions", "in more than 6 dimensions", in_many_dimensions, **swept("task.dimension", 3, 9)),
    *by_world(
        "hinge", "with the hinge loss", of_hinge_losses, mechanisms=ONE, **swept("task.loss", "logistic", "hinge")
    ),
    *by_world(
        "unheard",
        "where nobody is heard",
        unheard_of,
        mechanisms=ONE,
        scenario={"network.start": "own", "sweep": {"network.loss": [0.1, 0.95]}},
        harmed=("network.loss", 0.95),
    ),
    *by_world("other-seeds", "with other seeds' data", in_other_data, mechanisms=ONE, scenario={"seeds": 4}),
    *by_world(
        "dense-graphs",
        "with other seeds' graphs",
        of_many_neighbours,
        mechanisms=ONE,
        beyond="the graph is that of the fifth of six seeds, and four are replayed (--contract-points)",
        scenario={
            "seeds": 6,
            "topology": {"kind": "erdos_renyi", "probability": 0.3, "allow_isolated": True, "allow_disconnected": True},
        },
    ),
]


def beyond(self, me):
    """The step's release, as one that nothing bounds."""
    return replace(self.release(me), verified_sensitivity=math.inf, reason="nothing bounds it")


def draw_beyond(self, me):
    """A draw for an unbounded sensitivity, which nobody ever hears of."""
    beyond(self, me).perturb(np.zeros(self.problem.task.dimension), rng=me.stream("noise"))


def exempting(who: Callable[..., bool], honest: int, first: int = 0) -> dict[str, Any]:
    """Draws for an unbounded sensitivity once, and after some honest steps sends raw models as public."""

    def noisy(self, me, release, exact):
        if me.updates == first and who(me):
            draw_beyond(self, me)
        return exact if me.updates >= honest and who(me) else release.perturb(exact, rng=me.stream("noise"))

    def send(self, me, release):
        if me.updates < honest or not who(me):
            return me.send("model", me.model, release)
        return me.send("model", me.model, me.public("it follows from what was released"))

    return {"noisy": noisy, "send": send}


def raw_under_its_release(self, me, release):
    if me.updates == 0:
        draw_beyond(self, me)
    me.send("model", me.model + me.data.features.mean(axis=0), release)


def starts_beyond(self, me):
    draw_beyond(self, me)
    Descent.start(self, me)


def at_ten_times(self, me, release, exact):
    """Every step draws for an unbounded sensitivity, too, and ten times the value that its release is charged for."""
    draw_beyond(self, me)
    return release.perturb(exact * 10, rng=me.stream("noise"))


def nine_tenths_raw(self, me, release, exact):
    if me.updates == 0:
        draw_beyond(self, me)
    return release.perturb(exact, rng=me.stream("noise")) / 10 + 0.9 * exact


def everybody(me):
    return True


def agent_3(me):
    return me.agent == 3


def with_neighbours(me):
    return len(me.neighbours) > 0 and me.agent % 2 == 1


def exempt(name: str, what: str, **members: Any) -> Case:
    return Case(name, "exempt", variant(name.title().replace("-", ""), Waking, **members), what)


EXEMPT = [
    exempt("unsent-then-raw", "a draw without bound, then raw models", **exempting(everybody, 1)),
    exempt("later-then-raw", "likewise from the fourth step on", **exempting(everybody, 4, first=3)),
    exempt("one-agent", "likewise, of agent 3 alone", **exempting(agent_3, 1)),
    exempt("odd-agents", "likewise, of every other agent", **exempting(with_neighbours, 2)),
    exempt("raw-noisy", "raw models under releases of noise", send=raw_under_its_release),
    exempt(
        "at-the-start",
        "a draw without bound at the start, raw models after a step",
        start=starts_beyond,
        **exempting(everybody, 1, first=99),
    ),
    exempt("ten-times", "a draw without bound in every step, and clips at ten times", noisy=at_ten_times),
    exempt("nine-tenths-raw", "a draw without bound, and nine tenths of a raw gradient", noisy=nine_tenths_raw),
]


def raw_means(me):
    post_processed(me)
    return me.model + me.features.mean(axis=0)


def mean_label(me):
    return me.model + 1e-3 * me.labels.mean()


def mean_feature(me):
    return me.model + 1e-3 * me.features.mean(axis=0)


def scaled_by_labels(me, ranks):
    """A gradient that is clipped, times how far labels lean."""
    return mean_gradient(me, ranks) * (1 + 5 * np.abs(me.labels.mean()))


def shifted_by_labels(me, ranks):
    return mean_gradient(me, ranks) + me.labels.mean()


def shifted_by_features(me, ranks):
    return mean_gradient(me, ranks) + 5 * clip_rows(me.features, 1.0).mean(axis=0)


def unclipped(me, ranks):
    return clipped_to(me, gradients(me, ranks), 10 * me.clip).sum(axis=0) / me.parts


def as_instance(*parts: str) -> Callable[..., None]:
    """A preparation that says only then what is shared."""

    def prepare(self):
        self.shared_parts = parts

    return prepare


BOTH = ("features", "labels")


def shared(name: str, what: str, of: tuple[str, ...], listed: tuple[str, ...] = (), members=None, **parts: Any) -> Case:
    own: dict[str, Any] = {"shared_parts": of, "assumed_public": listed, **(members or {})}
    part = name.split("-")[0]
    stated = f"{part} of all records, which neighbouring data sets share" if part in BOTH else ""
    return Case(name, "shared_parts", variant(name.title().replace("-", ""), parts=parts, **own), what, stated=stated)


SHARED_PARTS = [
    shared("all-shared-raw", "all is shared, and raw means are sent", BOTH, send=raw_means),
    shared("all-shared-unclipped", "all is shared, and clipped at ten times", BOTH, value=unclipped),
    shared("all-shared-listed", "likewise, as listed", BOTH, ("features and labels",), value=unclipped),
    shared(
        "all-shared-late",
        "all is shared, as it is prepared",
        (),
        members={"prepare": as_instance(*BOTH)},
        send=raw_means,
    ),
    shared("labels-mean", "labels are shared, and not listed: their mean is sent", ("labels",), send=mean_label),
    shared(
        "labels-shift", "labels are shared, and not listed: their mean is added", ("labels",), value=shifted_by_labels
    ),
    shared("labels-scale", "labels are shared, and not listed: they scale", ("labels",), value=scaled_by_labels),
    shared(
        "labels-late",
        "labels are shared, as it is prepared",
        (),
        members={"prepare": as_instance("labels")},
        send=mean_label,
    ),
    shared(
        "features-mean", "features are shared, and not listed: their mean is sent", ("features",), send=mean_feature
    ),
    shared(
        "features-shift",
        "features are shared, and not listed: their mean is added",
        ("features",),
        value=shifted_by_features,
    ),
]
