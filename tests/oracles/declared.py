"""Small protocols that declare when they send, so that their steps can be planned, in the worlds of `worlds.py`.

`declared` takes of a random world all but what only numbers decide: its clocks, links, absences, schedule and limits
stay. The protocols run on the frozen engine as they stand here; `steps.py` has their planned forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hushnet.protocols.steps.kernels import NO_WEIGHTS, rank_of
from numpy.typing import NDArray

from .engine import build
from .engine.contract import Schedules
from .engine.diary import Diary, Row, digest
from .engine.protocols import Talk, Trade, schedule_of
from .engine.setting import Limits, Setting, Stop
from .engine.world import World
from .laws import Draws

Array = NDArray[np.float64]
SAME = 0.25
"""What every number of a message is that is always the same."""


def declared(description: dict[str, Any]) -> dict[str, Any]:
    """The same world with a protocol whose sending follows from what it declares.

    A kind of message has ``each`` (whether every neighbour gets numbers of its own), ``same`` (whether its numbers
    never change), ``period`` and ``phase`` of agent 0, which is one later for each further agent.
    """
    given = description["protocol"]
    width = given["width"] if isinstance(given["width"], int) else given["width"][0]
    common = {"width": width, "noise": None, "explode": given["explode"], "edges": given.get("edges", True)}
    if given["name"] == "trade":
        kept = {name: given[name] for name in ("unanswered", "vectors", "short", "offers")}
        common["noise"] = given["noise"] and {**given["noise"], "disclose": False, "updates": None, "epsilon": None}
        protocol = {"name": "trade", **common, **kept, "silent": None, "weighted": given["partner"] != "uniform"}
        return {**description, "protocol": protocol}
    rounds = (description["schedule"] or {}).get("kind") == "rounds" or given.get("trigger") == "round"
    kinds = [_kind(kind, description) for kind in given.get("kinds", [REPORT])]
    if given["noise"]:
        common["noise"] = {**given["noise"], "disclose": False}
        kinds = [{**kinds[0], "each": False, "same": False, "period": 1, "phase": 0}]
    protocol = {
        "name": "talk",
        **common,
        "silent": given["silent"] and {**given["silent"], "words": True},
        "kinds": kinds,
        "start": given.get("start", "all"),
        "plainly": not given["noise"] and description["seed"] % 2 == 0,
        "trigger": "round" if given.get("trigger") == "round" else "wake",
        "inbox": "per_round" if rounds and given["inbox"] == "per_round" else "latest",
        "echo": None,
    }
    return {**description, "protocol": protocol}


REPORT = {"name": "report", "short": 1, "vectors": 1, "mirrors": False, "to": "all", "times": 1}
"""What takes the place of the reports to a centre, which answers by numbers."""
TIMES = {"all": (1, 0), "odd": (2, 1), "never": (0, 0), "turn": (2, 0), "mixed": (3, 1)}
"""Period and phase, by whom a message of `worlds.py` goes to."""


def _kind(kind: dict[str, Any], description: dict[str, Any]) -> dict[str, Any]:
    period, phase = TIMES[kind["to"]]
    each = kind["to"] == "turn" and description["availability"]["joins"] is None
    kept = {name: kind[name] for name in ("name", "short", "vectors", "mirrors")}
    return {**kept, "each": each, "same": kind["times"] == 2 or kind["vectors"] == 0, "period": period, "phase": phase}


class DeclaredTalk(Talk):
    """Broadcasts and rounds.

    Parameters
    ----------
    options : dict
        See `declared`.
    schedule : Schedules or None
    agents : int
    diary : Diary
    """

    def __init__(self, options: dict[str, Any], schedule: Schedules | None, agents: int, diary: Diary) -> None:
        super().__init__(options, schedule, agents)
        self.diary = diary

    def due(self, kind: dict[str, Any], agent: int, updates: int) -> bool:
        """Whether an agent sends a kind at its step after so many others."""
        return kind["period"] > 0 and updates % kind["period"] == (kind["phase"] + agent) % kind["period"]

    def words(self, agent: int, model: Array, kind: dict[str, Any]) -> Array:
        """What a step says: (width,) numbers, or (n, width) by neighbour."""
        width = self.width(agent, kind["short"])
        said = np.full(width, SAME) if kind["same"] else model[:width]
        return said + 100.0 * np.arange(self.agents)[:, None] if kind["each"] else said

    def change(self, view: Any) -> None:
        """Write a step down, and let it change its agent's blocks."""
        self.diary.step("wake", view)
        self.mix(view)
        for rank in range(len(view.weights) if self.options["edges"] else 0):
            view.edge["seen"][rank] += rank + 1

    def start(self, view: Any, out: Any) -> None:
        """See `Protocol.start`."""
        view = Steady(view, self.options["kinds"])
        self.diary.step("start", view)
        self.begin(view, out)
        told, silent, degree = self.options["start"], self.options["silent"], len(view.neighbours)
        release = out.plain("start") if self.options["plainly"] else out.public("start")
        for kind in self.options["kinds"] if told != "nothing" and degree else ():
            words = self.words(view.agent, view.state["model"], kind)
            for rank in range(degree) if kind["each"] else [0]:
                to = int(view.neighbours[rank]) if kind["each"] or told == "first" else None
                if told == "all" or rank == 0:
                    self.tell(kind["name"], words[rank] if kind["each"] else words, view.now)
                    out.send(kind["name"], words[rank] if kind["each"] else words, release, to=to)
        if silent and silent["after"] == 0 and view.agent % silent["every"] == 0:
            out.fall_silent()

    def tell(self, kind: str, vector: Array, now: float) -> None:
        """Take note that something is sent."""

    def wake(self, view: Any, out: Any) -> None:
        """See `Protocol.wake`."""
        noise = self.options["noise"]
        release = out.noisy(noise["scale"]) if noise else out.plain("no noise")
        if not out.reserve(release):
            out.fall_silent()
            return
        done, model = self.done(view), view.state["model"]
        self.change(Steady(view, self.options["kinds"]))
        if done:
            out.fall_silent()
        for kind in self.options["kinds"]:
            if not self.due(kind, view.agent, view.updates):
                continue
            words = self.words(view.agent, model, kind)
            if kind["each"]:
                for neighbour, own in zip(view.neighbours.tolist(), words, strict=False):
                    out.send(kind["name"], own, release, to=neighbour)
            else:
                out.send(kind["name"], release.perturb(words, rng=view.stream("noise")) if noise else words, release)


class DeclaredTrade(Trade):
    """Exchanges in pairs; as `DeclaredTalk`."""

    def __init__(self, options: dict[str, Any], schedule: Schedules | None, agents: int, diary: Diary) -> None:
        super().__init__(options, schedule, agents)
        self.diary = diary

    def start(self, view: Any, out: Any) -> None:
        """See `Protocol.start`."""
        self.diary.step("start", Steady(view, []))
        self.begin(view, out)

    def partner(self, view: Any) -> int:
        """See `Protocol.partner`."""
        law = view.weights if self.options["weighted"] else NO_WEIGHTS
        return int(rank_of(view.partner_luck(), len(view.neighbours), np.ascontiguousarray(law)))

    def asks(self, view: Any, partner: int) -> Array:
        """What a request says."""
        self.diary.step("offer", Steady(view, []), (partner,))
        if self.options["offers"]:
            self.move(view, 0.3 * partner)
        return view.state["model"][: self.width(view.agent, self.options["short"])].copy()

    def answers(self, view: Any, partner: int, heard: Array) -> Array:
        """What a reply says."""
        self.diary.step("accept", Steady(view, []), (partner, digest(heard)))
        said = view.state["model"].copy()
        self.get(view, partner, heard)
        return said

    def offer(self, view: Any, partner: int, out: Any) -> None:
        """See `Protocol.offer`."""
        self.hand(view, partner, out, "request", self.asks(view, int(partner)))

    def accept(self, view: Any, partner: int, vector: Array, out: Any) -> None:
        """See `Protocol.accept`."""
        self.hand(view, partner, out, "reply", self.answers(view, int(partner), vector))

    def hand(self, view: Any, partner: int, out: Any, kind: str, said: Array) -> None:
        """Send what half of an exchange says, with noise if asked for."""
        noise = self.options["noise"]
        release = out.noisy(noise["scale"]) if noise else out.plain("no noise")
        told = release.perturb(said, rng=view.stream("noise")) if noise else said
        out.send(kind, told, release, to=int(view.neighbours[partner]))

    def finish(self, view: Any, partner: int, vector: Array) -> None:
        """See `Protocol.finish`."""
        self.diary.step("finish", Steady(view, []), (int(partner), digest(vector)))
        self.get(view, int(partner), vector)


class Steady:
    """A view that shows some kinds, of messages that are always the same not when they were sent, and no rounds.

    Parameters
    ----------
    view : View
    kinds : list of dict
    """

    round = 0

    def __init__(self, view: Any, kinds: list[dict[str, Any]]) -> None:
        self._view, self.kinds = view, [kind["name"] for kind in kinds]
        self._same = {kind["name"] for kind in kinds if kind["same"]}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def sent_at(self, kind: str) -> Any:
        """See `View.sent_at`."""
        if kind in self._same:
            return np.where(self._view.heard(kind), 0.0, -np.inf)
        return self._view.sent_at(kind)


def protocol_of(description: dict[str, Any], diary: Diary) -> DeclaredTalk | DeclaredTrade:
    """The small protocol of a description that `declared` gave."""
    kind = DeclaredTrade if description["protocol"]["name"] == "trade" else DeclaredTalk
    return kind(description["protocol"], schedule_of(description["schedule"]), len(description["ids"]), diary)


def run(description: dict[str, Any]) -> list[Row]:
    """All rows of a run of the frozen engine; first of all steps by agent."""
    diary = Diary()
    setting = Setting(
        ids=description["ids"],
        graph=build.graph_of(description),
        clock=description["clock"],
        network=description["network"],
        availability=description["availability"],
        stop=Stop(**description["stop"]),
        draws=Draws(description["seed"]),
        limits=Limits(**description["limits"]),
    )
    protocol: Any = protocol_of(description, diary)
    world = World(setting, protocol, recorder=diary, observer=diary, **description["record"])
    return by_agent(build.run_world(world, diary))


def by_agent(rows: list[Row]) -> list[Row]:
    """Rows with the steps of each agent first, in their order: steps that are planned are made later than they come."""
    steps = sorted((row for row in rows if row[0] == "step"), key=lambda row: row[2])
    return steps + [row for row in rows if row[0] != "step"]
