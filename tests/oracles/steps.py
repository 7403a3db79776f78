"""The small protocols of `declared.py` as steps that the project plans, of one agent or of a batch of agents."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from hushnet.agents.errors import HushnetError, Stall
from hushnet.protocols.base import Layout, MessageKind, Protocol, Traits
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.protocols.steps import batched, perturbed
from hushnet.protocols.steps.declarations import Every, StepNoise
from hushnet.protocols.steps.kernels import NO_WEIGHTS
from hushnet.protocols.steps.step_names import Constants
from hushnet.simulator.engine.selection import BatchedEngine, Engine, run_exactly
from hushnet.simulator.language.message_window import MessageWindow
from hushnet.simulator.network.setting import Setting
from hushnet.simulator.recording.message_log import MessageLog
from hushnet.simulator.world.step_form import Rewind
from hushnet.simulator.world.world import World
from numpy.typing import NDArray

from .declared import DeclaredTalk, DeclaredTrade, Steady, by_agent, protocol_of
from .engine.diary import Diary, Row
from .product import MirrorParameters, Recorded, SeenView, WayOut, charges_of, mirror_privacy, setting_of, stalled

Form = Literal["planned", "batches"]
"""What a run says of the form of its steps: of one agent after the other, or of many at once."""
FORMS: tuple[Form, Form] = "planned", "batches"
Array = NDArray[np.float64]


def run(description: dict[str, Any], form: Form, *, observed: bool = False) -> list[Row]:
    """All rows of a run whose steps are planned, those of single messages if it is observed; first steps by agent."""
    with tempfile.TemporaryDirectory() as folder:
        look = lambda diary, _: diary if observed else None  # noqa: E731
        world, diary, why = _ran(description, form, BatchedEngine(), folder, look)
    assert world.form, world
    assert world.form.form == form, world.form
    diary.close(world, why, charges_of(world))
    rows = by_agent(diary.rows)
    # A batch in which a step fails is computed again, up to that step.
    return [row for row, before in zip(rows, [None, *rows], strict=False) if row != before]


def message_log(
    description: dict[str, Any], form: Form, engine: Engine, agents: list[int], between: list[float]
) -> pd.DataFrame:
    """The table of a run's message log.

    Parameters
    ----------
    description : dict
    form : {"planned", "batches"}
    engine : Engine
    agents : list of int
        Indices of those whose messages are kept.
    between : [float, float]
    """
    window = MessageWindow(agents=[description["ids"][agent] for agent in agents], between=between)
    log = lambda _, setting: MessageLog(window, setting.task.ids, setting.graph)  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        world = _ran(description, form, engine, folder, log)[0]
        assert isinstance(world.observer, MessageLog)
        return world.observer.table(world)


def _ran(
    description: dict[str, Any], form: Form, engine: Engine, folder: str, observer: Callable[[Diary, Setting], Any]
) -> tuple[World, Diary, str]:
    """The world of a run that is over, what was written down of it, and why it ended."""
    setting = setting_of(description, Path(folder))
    made: list[tuple[World, Diary]] = []

    def make(again: Rewind | None) -> World:
        diary = Diary()
        protocol, parameters = protocol_class(description, diary, form), parameters_of(description)
        onlookers = {"recorder": Recorded(diary), "observer": observer(diary, setting)}
        options = {**onlookers, "again": again, **description["record"]}
        made.append((World(setting, protocol, parameters, **options), diary))
        return made[-1][0]

    why = ""
    try:
        run_exactly(make, lambda _: engine)
    except Stall as error:
        why = stalled(str(error))
    except HushnetError as error:
        why = type(error).__name__
    return *made[-1], why or made[-1][0].ended


def parameters_of(description: dict[str, Any]) -> MirrorParameters:
    """No parameters but the schedule."""
    return MirrorParameters.model_validate({"kind": "mirror", "schedule": description["schedule"]})


class SeenStep:
    """What a planned step sees of one agent, under the names that the small protocols use.

    Parameters
    ----------
    told : dict
        When what was sent, by kind and bytes.
    heard : dict
        By kind, (degree, width) vectors and (degree,) whether anything was heard.
    **fields
        ``agent``, ``now``, ``tick``, ``updates``, ``weights``, ``state`` and ``edge``.
    """

    messages = ()

    def __init__(self, told: dict[tuple[str, bytes], float], heard: dict[str, Any], **fields: Any) -> None:
        self._told, self._heard = told, heard
        vars(self).update(fields)

    def received(self, kind: str) -> Array:
        """See `tests.oracles.engine.view.View.received`."""
        return self._heard[kind][0]

    def heard(self, kind: str) -> NDArray[np.bool_]:
        """See `tests.oracles.engine.view.View.heard`."""
        return self._heard[kind][1]

    def sent_at(self, kind: str) -> list[float]:
        """See `tests.oracles.engine.view.View.sent_at`."""
        pairs = zip(*self._heard[kind], strict=True)
        return [self._told.get((kind, vector.tobytes()), np.nan) if was else -np.inf for vector, was in pairs]


class Seen:
    """What a planned step sees of each of its agents, and how it gives back what they have become.

    Parameters
    ----------
    me : record of a step
    told : dict
        See `SeenStep`.
    kinds, edge : sequence of str
        The kinds that it reads, and the blocks of edges.
    """

    def __init__(
        self, me: Any, told: dict[tuple[str, bytes], float], kinds: Sequence[str], edge: Sequence[str]
    ) -> None:
        self.me, self.one, self._edge = me, np.ndim(me.agent) == 0, edge
        heard = {kind: _heard(me, kind, len(kinds)) for kind in kinds}
        degrees = np.reshape(me.degree, -1)
        ends = np.cumsum(degrees)
        self.steps: list[Any] = []
        for b, (end, degree) in enumerate(zip(ends.tolist(), degrees.tolist(), strict=True)):
            own = slice(end - degree, end)
            fields = {name: np.reshape(getattr(me, name), -1)[b] for name in ("agent", "now", "tick", "updates")}
            fields["state"] = {"model": me.model if self.one else me.model[b].copy()}
            fields["edge"] = {name: getattr(me, name) if self.one else getattr(me, name)[own].copy() for name in edge}
            fields["weights"] = np.reshape(me.weights, -1)[own]
            here = {kind: (vectors[own], was[own]) for kind, (vectors, was) in heard.items()}
            self.steps.append(SeenStep(told, here, **fields))

    def give_back(self) -> None:
        """Assign what a batch has become; of one agent, all was written in place."""
        if not self.one:
            self.me.model = np.stack([step.state["model"] for step in self.steps])
            for name in self._edge:
                setattr(self.me, name, np.concatenate([step.edge[name] for step in self.steps]))

    def joined(self, vectors: list[Array], *, each: bool = False) -> Array:
        """What its agents say, as it is assigned."""
        if self.one:
            return vectors[0]
        return np.concatenate(vectors) if each else np.stack(vectors)


def _heard(me: Any, kind: str, kinds: int) -> tuple[Array, NDArray[np.bool_]]:
    end = f"_{kind}" if kinds > 1 else ""
    return getattr(me, f"heard{end}"), np.reshape(getattr(me, f"was_heard{end}"), -1)


class SmallNoise(StepNoise):
    """Laplace noise of one scale.

    Parameters
    ----------
    scale : float
    agents : int
    """

    mechanism = "laplace"

    def __init__(self, scale: float, agents: int) -> None:
        self.scale, self.agents = scale, agents

    def release(self, me: Any) -> Release:
        """See `StepNoise.release`."""
        return WayOut(me).noisy(self.scale)

    def scales(self) -> Array:
        """See `StepNoise.scales`."""
        return np.full((self.agents, 1), self.scale)


def protocol_class(description: dict[str, Any], diary: Diary, form: Form) -> type[Protocol]:
    """A protocol class of the project whose planned steps do what the small protocol does, and write it down."""
    inner: Any = protocol_of(description, diary)
    kinds = {kind["name"]: kind for kind in inner.options.get("kinds", ())}
    noise, agents = inner.options["noise"], len(description["ids"])

    class Declared(Protocol):
        Parameters = MirrorParameters
        traits = Traits(**vars(inner.traits))

        def prepare(self) -> None:
            self.step_noise = SmallNoise(noise["scale"], agents) if noise else None

        def layout(self) -> Layout:
            given = inner.layout()
            messages = {
                kind: MessageKind(**vars(spec), addressed=bool(kinds) and kinds[kind]["each"])
                for kind, spec in given.messages.items()
            }
            return Layout(agent=given.agent, edge=given.edge, messages=messages, roles=given.roles)

        def start(self, me: Any) -> None:
            inner.start(SeenView(me, [*kinds], rounds=False), WayOut(me))

        def release(self, me: Any) -> Release:
            return super().release(me) if noise else Release.plain(me.agent, me.now, "no noise")

        @property
        def privacy(self) -> Any:
            return mirror_privacy(inner.privacy)

    return _talking(Declared, inner, form) if kinds else _trading(Declared, inner, form)


def _talking(base: Any, inner: DeclaredTalk, form: Form) -> type[Protocol]:
    told: dict[tuple[str, bytes], float] = {}
    kinds, edge = {kind["name"]: kind for kind in inner.options["kinds"]}, ["seen"] if inner.options["edges"] else []
    message = "message_{}" if len(kinds) > 1 else "message"

    def tell(kind: str, vector: Array, now: float) -> None:
        told[kind, np.asarray(vector).tobytes()] = float(now)

    inner.tell = tell  # type: ignore[method-assign]

    def step(me: Any) -> None:
        seen = Seen(me, told, [*kinds], edge)
        for view in seen.steps:
            inner.change(Steady(view, [*kinds.values()]))
        seen.give_back()
        for name, kind in kinds.items():
            due = [inner.due(kind, int(view.agent), int(view.updates)) for view in seen.steps]
            words = [inner.words(int(view.agent), view.state["model"], kind) for view in seen.steps]
            if kind["each"]:
                words = [own[: len(view.weights)] for view, own in zip(seen.steps, words, strict=True)]
            said = seen.joined(words, each=kind["each"])
            if inner.options["noise"]:
                said = perturbed(me, said)
                words = [said] if seen.one else [*said]
            if any(due):
                setattr(me, message.format(name), said)
            for view, own, sends in zip(seen.steps, words, due, strict=True):
                for vector in np.atleast_2d(own) if sends else ():
                    tell(name, vector, view.now)

    class Talks(base):
        def sends(self) -> dict[str, Every]:
            count = np.arange(len(self.problem.graph.degrees))
            periods = {name: (kind["period"], kind["phase"]) for name, kind in kinds.items()}
            return {name: Every(period, (phase + count) % max(period, 1)) for name, (period, phase) in periods.items()}

        def most_steps(self) -> Any:
            silent, count = inner.options["silent"], np.arange(len(self.problem.graph.degrees))
            return silent and np.where(count % silent["every"] == 0, max(1, silent["after"]), np.inf)

    Talks.step = staticmethod(batched(step) if form == "batches" else step)
    return Talks


def _trading(base: Any, inner: DeclaredTrade, form: Form) -> type[Protocol]:
    edge, noise = ["got"] if inner.options["edges"] else [], inner.options["noise"]

    def request(me: Any, partner: Any) -> None:
        seen = Seen(me, {}, [], edge)
        partners = np.reshape(partner, -1).tolist()
        said = [inner.asks(view, rank) for view, rank in zip(seen.steps, partners, strict=True)]
        seen.give_back()
        me.message = perturbed(me, seen.joined(said)) if noise else seen.joined(said)

    def respond(me: Any, partner: Any, heard: Array) -> None:
        seen = Seen(me, {}, [], edge)
        given = zip(seen.steps, np.reshape(partner, -1).tolist(), np.atleast_2d(heard), strict=True)
        said = [inner.answers(*one) for one in given]
        seen.give_back()
        me.message = perturbed(me, seen.joined(said)) if noise else seen.joined(said)

    def complete(me: Any, partner: Any, heard: Array) -> None:
        seen = Seen(me, {}, [], edge)
        for view, rank, vector in zip(seen.steps, np.reshape(partner, -1).tolist(), np.atleast_2d(heard), strict=True):
            inner.finish(view, rank, vector)
        seen.give_back()

    class Trades(base):
        def constants(self) -> Constants:
            graph = self.problem.graph
            return Constants(edge={"rank": np.arange(len(graph.heads)) - graph.offsets[graph.tails]})

        def partner_weights(self) -> Array:
            return self.problem.graph.weights if inner.options["weighted"] else NO_WEIGHTS

    if form == "batches":
        ranks = lambda me: me.here.rank.astype(np.int64)  # noqa: E731
        Trades.request = staticmethod(batched(lambda me: request(me, ranks(me))))
        Trades.respond = staticmethod(batched(lambda me, heard: respond(me, ranks(me), heard)))
        Trades.complete = staticmethod(batched(lambda me, heard: complete(me, ranks(me), heard)))
    else:
        Trades.request, Trades.respond, Trades.complete = map(staticmethod, (request, respond, complete))  # type: ignore[arg-type]
    return Trades
