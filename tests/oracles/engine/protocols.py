"""Small protocols that exercise the rules: every number that they send follows from all that was heard before.

Their options are plain data, see each class. They use of views and of ways out what `View` and `Out` have, so that the
same text runs on any engine whose adapter has these names. Whatever they compute they compute number by number, in the
order of neighbours or of arrivals: another order of events gives other bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .contract import AsyncSchedule, ExchangeSchedule, Privacy, Protocol, RoundsSchedule, Schedules, Traits
from .view import Layout, MessageKind


def schedule_of(description: dict[str, Any] | None) -> Schedules | None:
    """A schedule as a description has it."""
    if description is None:
        return None
    fields = {key: value for key, value in description.items() if key != "kind"}
    return {"async": AsyncSchedule, "rounds": RoundsSchedule, "exchange": ExchangeSchedule}[description["kind"]](**fields)


def protocol_of(options: dict[str, Any], schedule: dict[str, Any] | None, agents: int) -> Small:
    """The protocol that is described."""
    return {"talk": Talk, "trade": Trade, "star": Star}[options["name"]](options, schedule_of(schedule), agents)


class Small(Protocol):
    """What they share: noise, silence, and numbers that depend on everything heard.

    Parameters
    ----------
    options : dict
        ``width`` of the model, one or one per agent, at least 3; ``noise`` (None, or ``scale``, ``updates``,
        ``epsilon``, ``ways``, ``disclose``, ``start``, ``reserve``); ``silent`` (None, or ``after`` so many updates, ``words`` with the last
        step, of agents whose index is 0 modulo ``every``); ``explode`` (None, or ``agent``, ``after``, ``sent``).
    schedule : Schedules or None
    agents : int
    """

    def __init__(self, options: dict[str, Any], schedule: Schedules | None, agents: int) -> None:
        self.options, self.schedule, self.agents = options, schedule, agents
        noise = options["noise"]
        self.privacy = Privacy(noise["updates"], noise["epsilon"]) if noise else None
        self.kept: dict[tuple[int, str], tuple[Any, NDArray[np.float64]]] = {}
        self.made: dict[tuple[int, str], int] = {}

    def begin(self, view: Any, out: Any) -> None:
        """Set an agent's model at its start."""
        model, noise = view.state["model"], self.options["noise"]
        model[:] = np.arange(1.0, len(model) + 1) / (view.agent + 2)
        model[:2] = view.agent + 1, view.tick
        if noise and noise["disclose"]:
            release = out.noisy(noise["scale"])
            out.reserve(release)
            model[2:] = release.perturb(model[2:].copy(), rng=view.stream("noise"))
            out.disclose(release)

    def mix(self, view: Any) -> None:
        """Let a model follow what its agent has heard."""
        model, total = view.state["model"], 0.0
        for kind in view.kinds:
            heard, when = view.heard(kind), view.sent_at(kind)
            for rank, vector in enumerate(view.received(kind)):
                age = view.now - float(when[rank]) if heard[rank] else 1.0
                total = 0.9 * total + float(view.weights[rank]) * float(vector[-1]) / (1.0 + age)
        for message in view.messages:
            total = 0.7 * total + float(message.vector[-1]) + 0.001 * message.sender
        self.move(view, total)

    def move(self, view: Any, total: float) -> None:
        """One step of a model by a number."""
        model = view.state["model"]
        model[:2] = view.agent + 1, view.tick
        model[2:] = 0.6 * model[2:] + 0.1 * math.tanh(total) + 0.01 * (view.tick + 2)
        explode = self.options["explode"]
        if explode and explode["agent"] == view.agent and view.updates >= explode["after"]:
            model[-1] = math.inf

    def say(self, view: Any, out: Any, kind: str, width: int, *, to: int | None = None) -> bool:
        """Send the first numbers of a model, with noise if asked for; False if the agent cannot afford it."""
        noise, key = self.options["noise"], (view.agent, kind)
        vector = view.state["model"][:width]
        if self.options["explode"] and self.options["explode"]["sent"] is False:
            vector = np.where(np.isfinite(vector), vector, 0.5)
        if not noise:
            out.send(kind, vector, out.plain("no noise"), to=to)
            return True
        count = self.made[key] = self.made.get(key, -1) + 1
        way = noise["ways"][count % len(noise["ways"])]
        if way == "again" and key in self.kept:  # the same release and bytes: free
            release, vector = self.kept[key]
            out.send(kind, vector, release, to=to)
            return True
        if way == "relay" and key in self.kept:  # other bytes of a release that was paid for: free
            release, vector = self.kept[key]
            out.send(kind, vector * 0.5, release, to=to)
            return True
        if way == "bytes":  # the same bytes under a release of their own: charged once
            out.send(kind, np.full(width, 0.25), out.plain("the same bytes"), to=to)
            return True
        release = out.noisy(noise["scale"])
        if noise["reserve"] and not out.reserve(release):
            out.fall_silent()
            return False
        noisy = release.perturb(vector, rng=view.stream("noise"))
        if way == "twice":  # noise drawn twice for one release: two charges
            noisy = release.perturb(vector, rng=view.stream("noise"))
        self.kept[key] = release, noisy
        out.send(kind, noisy, release, to=to)
        return True

    def done(self, view: Any) -> bool:
        """Whether an agent falls silent with this step."""
        silent = self.options["silent"]
        return bool(silent) and view.agent % silent["every"] == 0 and view.updates + 1 >= silent["after"]

    def widths(self, short: int = 0) -> Any:
        """Widths of a message kind."""
        width = self.options["width"]
        return width - short if isinstance(width, int) else np.array(width, dtype=np.int64) - short

    def width(self, agent: int, short: int = 0) -> int:
        """Width of an agent's messages of a kind."""
        width = self.options["width"]
        return (width if isinstance(width, int) else width[agent]) - short


class Talk(Small):
    """Broadcasts, rounds, echoes.

    Parameters
    ----------
    options : dict
        ``kinds``: list of ``name``, ``short`` (numbers fewer than the model has), ``vectors``, ``mirrors``, ``to``
        (``all``, ``turn``: one neighbour after the other, ``mixed``: all and one in turn, ``odd``: all, at odd updates
        only, ``never``), ``times``;
        ``start`` (``all``, ``first``: to the first neighbour only, ``nothing``); ``inbox``; ``trigger``; ``echo`` (None,
        or ``hops``, ``to``: ``sender`` or ``all``, ``silent`` after so many reactions or None); ``edges``: whether
        edges have blocks; ``quiet``: whether a step that falls silent without words counts as none.
    """

    def __init__(self, options: dict[str, Any], schedule: Schedules | None, agents: int) -> None:
        super().__init__(options, schedule, agents)
        self.traits = Traits(trigger=options["trigger"], inbox=options["inbox"])
        self.reacted = [0] * agents

    def layout(self) -> Layout:
        """See `Protocol.layout`."""
        kinds = {
            kind["name"]: MessageKind(
                self.widths(kind["short"]), mirrors="model" if kind["mirrors"] else None, vectors=kind["vectors"]
            )
            for kind in self.options["kinds"]
        }
        if self.options["echo"]:
            kinds["echo"] = MessageKind(2)
        edge = {"seen": 1} if self.options["edges"] else {}
        return Layout(agent={"model": self.widths()}, edge=edge, messages=kinds)

    def start(self, view: Any, out: Any) -> None:
        """See `Protocol.start`."""
        self.begin(view, out)
        told, silent = self.options["start"], self.options["silent"]
        noise = self.options["noise"]
        for kind in self.options["kinds"] if told != "nothing" else ():
            width = self.width(view.agent, kind["short"])
            to = int(view.neighbours[0]) if told == "first" and len(view.neighbours) else None
            if told == "first" and to is None:
                continue
            if noise and noise["start"]:
                self.say(view, out, kind["name"], width, to=to)
            else:
                out.send(kind["name"], view.state["model"][:width], out.public("start"), to=to)
        if silent and silent["after"] == 0 and view.agent % silent["every"] == 0:
            out.fall_silent()

    def wake(self, view: Any, out: Any) -> None:
        """See `Protocol.wake`."""
        done = self.done(view)
        self.mix(view)
        if self.options["edges"]:
            for rank in range(len(view.neighbours)):
                view.edge["seen"][rank] += rank + 1
        if done:
            out.fall_silent()
            if not self.options["silent"]["words"]:
                return
        for kind in self.options["kinds"]:
            for _ in range(kind["times"]):
                if not self.say_kind(view, out, kind):
                    return

    def say_kind(self, view: Any, out: Any, kind: dict[str, Any]) -> bool:
        """Send one kind to whom it goes; False if the agent cannot afford it."""
        width, to, degree = self.width(view.agent, kind["short"]), kind["to"], len(view.neighbours)
        if to == "never" or (to == "odd" and view.updates % 2 == 0) or (to in ("turn", "mixed") and not degree):
            return True
        one = to == "turn" or (to == "mixed" and view.updates % 2 == 1)
        receiver = int(view.neighbours[view.updates % degree]) if one else None
        return self.say(view, out, kind["name"], width, to=receiver)

    def receive(self, view: Any, message: Any, out: Any) -> None:
        """See `Protocol.receive`: a chain of echoes, each with a hop fewer to go."""
        echo = self.options["echo"]
        self.move(view, float(message.vector[-1]) + 0.01 * message.sender)
        self.reacted[view.agent] += 1
        if echo is None:
            return
        if echo["silent"] is not None and self.reacted[view.agent] >= echo["silent"]:
            out.fall_silent()
        hops = int(message.vector[1]) - 1 if message.kind == "echo" else echo["hops"]
        if hops > 0 and message.kind in ("echo", self.options["kinds"][0]["name"]):
            to = message.sender if echo["to"] == "sender" else None
            luck = view.stream("echo").normal()
            out.send("echo", [view.state["model"][2] + 0.01 * luck, hops], out.public("an echo"), to=to)


class Trade(Small):
    """Exchanges in pairs.

    Parameters
    ----------
    options : dict
        ``edges``: whether each end keeps what it got over an edge; ``unanswered``; ``partner`` (``uniform``, ``first``,
        ``turn``); ``offers``: whether an offer changes the caller; ``refuse`` (None, or ``after`` so many answers, one
        of them or all, by ``once``, of agents whose index is 0 modulo ``every``); ``vectors`` of a reply; ``short`` of a request.
    """

    def __init__(self, options: dict[str, Any], schedule: Schedules | None, agents: int) -> None:
        super().__init__(options, schedule, agents)
        self.traits = Traits(exchange="pairwise", unanswered=options["unanswered"])
        self.answered, self.offered = [0] * agents, [0] * agents

    def layout(self) -> Layout:
        """See `Protocol.layout`."""
        messages = {
            "request": MessageKind(self.widths(self.options["short"])),
            "reply": MessageKind(self.widths(), vectors=self.options["vectors"]),
        }
        return Layout(agent={"model": self.widths()}, edge={"got": 1} if self.options["edges"] else {}, messages=messages)

    def start(self, view: Any, out: Any) -> None:
        """See `Protocol.start`."""
        self.begin(view, out)

    def partner(self, view: Any) -> int:
        """See `Protocol.partner`."""
        degree = len(view.neighbours)
        if self.options["partner"] == "first":
            return 0
        return (view.tick + 1) % degree if self.options["partner"] == "turn" else super().partner(view)

    def offer(self, view: Any, partner: int, out: Any) -> None:
        """See `Protocol.offer`."""
        silent = self.options["silent"]
        self.offered[view.agent] += 1
        if silent and view.agent % silent["every"] == 0 and self.offered[view.agent] > silent["after"]:
            out.fall_silent()
            if not silent["words"]:
                return
        if self.options["offers"]:
            self.mix(view)
        width = self.width(view.agent, self.options["short"])
        self.say(view, out, "request", width, to=int(view.neighbours[partner]))

    def accept(self, view: Any, partner: int, vector: NDArray[np.float64], out: Any) -> None:
        """See `Protocol.accept`."""
        refuse = self.options["refuse"]
        self.answered[view.agent] += 1
        late = self.answered[view.agent] - (refuse["after"] if refuse else 0)
        if refuse and view.agent % refuse["every"] == 0 and (late == 1 if refuse["once"] else late > 0):
            out.fall_silent()
            return
        if self.say(view, out, "reply", self.width(view.agent), to=int(view.neighbours[partner])):
            self.get(view, partner, vector)

    def finish(self, view: Any, partner: int, vector: NDArray[np.float64]) -> None:
        """See `Protocol.finish`."""
        self.get(view, partner, vector)

    def get(self, view: Any, partner: int, vector: NDArray[np.float64]) -> None:
        """Move towards what came over an edge."""
        self.move(view, 0.5 * float(vector[-1]) + 0.1 * partner + 0.01 * float(vector[1]))
        if self.options["edges"]:
            view.edge["got"][partner] += float(vector[-1])


class Star(Small):
    """Parties report to a centre, agent 0, which answers every ``answer``-th report and sometimes tells everybody.

    Parameters
    ----------
    options : dict
        ``answer``; ``inbox``; ``tells``: whether the centre's own wake-ups tell all parties.
    """

    def __init__(self, options: dict[str, Any], schedule: Schedules | None, agents: int) -> None:
        super().__init__(options, schedule, agents)
        self.traits = Traits(trigger="message", inbox=options["inbox"])
        self.reports = 0

    def layout(self) -> Layout:
        """See `Protocol.layout`."""
        return Layout(
            agent={"model": self.widths()},
            edge={"part": 1},
            messages={"part": MessageKind(2), "total": MessageKind(self.widths(1), mirrors=None)},
            roles=["centre"] + ["party"] * (self.agents - 1),
        )

    def start(self, view: Any, out: Any) -> None:
        """See `Protocol.start`."""
        self.begin(view, out)

    def wake(self, view: Any, out: Any) -> None:
        """See `Protocol.wake`."""
        self.mix(view)
        if self.done(view):
            out.fall_silent()
        if view.role == "party":
            self.say(view, out, "part", 2)
        elif self.options["tells"]:
            self.say(view, out, "total", self.width(view.agent, 1))

    def receive(self, view: Any, message: Any, out: Any) -> None:
        """See `Protocol.receive`."""
        self.move(view, float(message.vector[-1]) + 0.01 * message.sender)
        if view.role == "centre":
            self.reports += 1
            rank = int(np.searchsorted(view.neighbours, message.sender))
            view.edge["part"][rank] += float(message.vector[1])
            if self.reports % self.options["answer"] == 0:
                self.say(view, out, "total", self.width(view.agent, 1), to=message.sender)
