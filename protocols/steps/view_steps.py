"""Steps as the event engine makes them, one after the other, by the view of an agent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.authors import author_place, place_of
from ...agents.errors import INTERRUPTED, HushnetError, InputError, Objection, StepFailure, words_of
from ..privacy.mechanisms import Release
from ..view import POST_PROCESSING, Out, View
from .names import MESSAGE
from .noise import UNPERTURBED
from .record import Batch, One, Record
from .sending import Every
from .sources import ViewSource
from .tables import StepTables

Array = NDArray[np.float64]
PHASES = ("request", "respond", "complete")
"""The steps of an exchange, in the order of its phases."""
READ_ONLY = "what is no block, or of a part of a batch, is there to be read: assign what changes, as in me.x = me.x + 1"
UNSENT = "it sends exactly one message, and has not assigned me.message"


def batched(step: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a step as one that is made for many agents at once: ``me`` has their rows.

    Above ``@staticmethod`` or below it, if it has one.
    """
    marked: Any = getattr(step, "__func__", step)
    marked.is_batched = True
    return step


def is_batched(step: Callable[..., Any]) -> bool:
    """Whether a step is marked `batched`."""
    return getattr(step, "is_batched", False)


def failure_of(
    protocol: Any, agent: int, now: float, updates: int, name: str, error: BaseException | str, also: str = ""
) -> StepFailure:
    """What is said of a step that raised an error, or has not done what it has to: who, when, and the author's line."""
    what, where = str(error) if isinstance(error, str) else "", ""
    if isinstance(error, BaseException):
        what = f"{type(error).__name__}: {words_of(error)}"
        where = author_place(error)
    if "read-only" in what:
        also = also or READ_ONLY
    who = protocol.problem.task.called(agent)
    return StepFailure(
        f"{who} at time {now:.6g}, after {updates} updates: the {name} of {type(protocol).__name__} "
        f"failed{f' at {where}' if where else ''}: {what}{f'; {also}' if also else ''}"
    )


def contradiction(protocol: Any, function: Callable[..., Any], what: str) -> StepFailure:
    """What is said of a `batched` step that has done something else than its protocol declares."""
    return StepFailure(
        f"{place_of(function)}: {what}, against what {type(protocol).__name__} declares by sends and most_steps; "
        "declare it, or set decides"
    )


class ViewSteps:
    """The steps of one protocol in one run.

    Parameters
    ----------
    protocol : Protocol
    steps : mapping of str to callable
        By name: ``step``, or the `PHASES` of an exchange.
    tables : StepTables
    """

    def __init__(self, protocol: Any, steps: Mapping[str, Callable[..., Any]], tables: StepTables) -> None:
        self.protocol, self.steps, self.tables = protocol, steps, tables
        self.names = tables.names
        self._records: dict[int, tuple[One, ViewSource]] = {}

    def wake(self, view: View, out: Out) -> None:
        """One step of an agent, as `Protocol.wake`."""
        release = self.protocol.release(view)
        if not self.protocol.asks_for_budget and not out.reserve(release):
            out.fall_silent()
            return
        me, source, over = self._run(
            "step", view, release, out.reserve, self.names.messages if self.names.kinds else {}
        )
        for name, kind in self.names.messages.items() if self.names.kinds else ():
            if self._is_declared and not self._is_due(kind, view):
                continue  # a step says for others of its batch, too
            if name in me.said_:
                self._send(view, kind, me, me.said_[name], self._sent_under(release, source), out)
            elif self._is_declared and len(view.neighbours) and self.names.width(kind, view.agent):
                raise contradiction(self.protocol, self.steps["step"], f"it did not send {name}")
        if over or self.protocol.is_last(view):
            out.fall_silent()

    def _is_due(self, kind: str, view: View) -> bool:
        """Whether an agent sends a kind at its next step, by what is declared."""
        declared = self._sends.get(kind)
        return declared is None or declared.is_due(view.agent, view.updates)

    @cached_property
    def _is_declared(self) -> bool:
        """Whether a step sends what its protocol declares, or fails: one that is `batched`, and does not decide."""
        return is_batched(self.steps["step"]) and not self.protocol.decides

    @cached_property
    def _sends(self) -> Mapping[str, Every]:
        return self.protocol.sends()

    def _send(self, view: View, kind: str, me: Record, message: Array, under: Release, out: Out) -> None:
        """Send a message to all neighbours, or to each its own."""
        if not self.names.layout.messages[kind].addressed:
            out.send(kind, message.reshape(-1), under)
            return
        for neighbour, own in zip(view.neighbours.tolist(), message, strict=True):
            out.send(kind, own, under, to=neighbour)

    def request(self, view: View, partner: int, out: Out) -> None:
        """Open an exchange, as `Protocol.make_request`."""
        self._half("request", view, partner, out)

    def respond(self, view: View, partner: int, vector: Array, out: Out) -> None:
        """The callee's half, as `Protocol.make_response`."""
        self._half("respond", view, partner, out, vector)

    def complete(self, view: View, partner: int, vector: Array) -> None:
        """The caller's half, as `Protocol.complete_exchange`."""
        self._run("complete", view, None, None, {}, partner, vector)

    def _half(self, name: str, view: View, partner: int, out: Out, *heard: Array) -> None:
        release = self.protocol.release(view)
        if not out.reserve(release):
            out.fall_silent()
            return
        kind = "request" if name == "request" else "reply"
        me, source, _ = self._run(name, view, release, out.reserve, {MESSAGE: kind}, partner, *heard)
        if MESSAGE not in me.said_:
            raise failure_of(self.protocol, view.agent, view.now, view.updates, name, UNSENT)
        under = self._sent_under(release, source)
        out.send(kind, me.said_[MESSAGE].reshape(-1), under, to=int(view.neighbours[partner]))

    def _sent_under(self, release: Release, source: ViewSource) -> Release:
        """What a message is charged as: without noise if its step was to draw some, and has not."""
        view = source.view
        if source.follows and not release.draws:
            return Release.public(view.agent, view.now, POST_PROCESSING, recipients=len(view.neighbours))
        if self.protocol.step_noise is not None and release.noisy and not release.draws:
            return Release.plain(view.agent, view.now, UNPERTURBED)
        return release

    def record(self, view: View, release: Release | None = None) -> One:
        """The record of an agent, for a start that calls operators.

        Parameters
        ----------
        view : View
        release : Release, optional
            What `perturbed` draws noise for.
        """
        me, source = self._record(view)
        source.begin(release, None)
        me.begin_(view.agent, {}, view.updates, view.tick, view.now)
        return me

    def alone(self, view: View, function: Callable[[Batch], Any]) -> None:
        """Let an agent call a function of a `batched` step at its start."""
        _, source = self._record(view)
        source.begin(None, None)
        batch = self._batch(view, source, {})
        function(batch)
        batch.write_back_()

    def _batch(self, view: View, source: ViewSource, messages: Mapping[str, str]) -> Batch:
        passing = {"updates": view.updates, "tick": view.tick, "now": view.now}
        columns = {key: np.array([value]) for key, value in passing.items()}
        return Batch(self.tables, source, np.array([view.agent]), messages, columns)

    def _record(self, view: View) -> tuple[One, ViewSource]:
        found = self._records.get(view.agent)
        if found is None:
            source = ViewSource(self.tables, view)
            found = self._records[view.agent] = One(self.tables, source), source
        return found

    def _run(
        self,
        name: str,
        view: View,
        release: Release | None,
        reserve: Callable[[Release], bool] | None,
        messages: Mapping[str, str],
        *arguments: Any,
    ) -> tuple[Record, ViewSource, Any]:
        step = self.steps[name]
        one, source = self._record(view)
        source.begin(release, reserve)
        source.look()
        me: Record = one
        try:
            if is_batched(step):
                me = batch = self._batch(view, source, messages)
                over = False
                if name == "step":
                    over = bool(np.any(step(batch)))
                else:
                    batch.passing_["edge"] = np.array([self.tables.graph.offsets[view.agent] + arguments[0]])
                    step(batch, *(vector[None] for vector in arguments[1:]))
                batch.write_back_()
                return me, source, over
            one.begin_(view.agent, messages, view.updates, view.tick, view.now)
            return me, source, step(one, *arguments)
        except (HushnetError, Objection, *INTERRUPTED):
            raise
        except BaseException as error:  # a class of an author's own may derive from it
            raise failure_of(self.protocol, view.agent, view.now, view.updates, name, error) from error


def function_in(kind: type, name: str) -> Callable[..., Any] | None:
    """A class's step function of this name, with or without ``@staticmethod``; None if it has none."""
    found = inspect.getattr_static(kind, name, None)
    return getattr(found, "__func__", found)


ARGUMENTS = {"step": ("me",), "request": ("me", "partner")}
"""What step functions are called with; all others with what was heard beside it, and batched ones without partner."""


def check_arguments(name: str, function: Callable[..., Any]) -> None:
    """Refuse a step function that cannot be called with what functions of its name are called with.

    Raises
    ------
    InputError
        With the line where it begins.
    """
    taken, wanted = inspect.signature(function), ARGUMENTS.get(name, ("me", "partner", "heard"))
    if is_batched(function):
        wanted = tuple(one for one in wanted if one != "partner")
    try:
        taken.bind(*wanted)
    except TypeError:
        raise InputError(f"{place_of(function)}: takes {taken}; admissible: {name}({', '.join(wanted)})") from None
