"""Steps that are made one by one, each when it is due, by the record of one agent."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...agents.authors import author_place, class_place, place_of
from ...agents.errors import INTERRUPTED, HushnetError, InputError, Objection, StepFailure, Undeclared, words_of
from .batch_record import Batch
from .declarations import Every
from .peer import Peer
from .step_names import MESSAGE
from .step_tables import StepTables

PHASES = ("request", "respond", "complete")
"""The steps of an exchange, in the order of its phases."""
RELEASING = ("step", "request", "respond")
"""The steps that set budget aside for what they release before they are made."""
NOTHING: Mapping[str, str] = {}
REQUEST, RESPOND = {MESSAGE: "request"}, {MESSAGE: "reply"}
READ_ONLY = "what is no block, or of a part of a batch, is there to be read: assign what changes, as in me.x = me.x + 1"
RETURNED = "a step returns True if it is an agent's last, or nothing; assign what changes, and me.message to send"
UNSENT = "it sends exactly one message, and has not assigned me.message"


def batched(step: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a step as one that is made for many agents at once: ``me`` has their rows.

    Above ``@staticmethod`` or below it, if it has one.
    """
    marked: Any = getattr(step, "__func__", step)
    marked.is_batched = True
    return step


def is_batched(step: Callable[..., Any]) -> bool:
    """True if a step is marked `batched`."""
    return getattr(step, "is_batched", False)


def failure_of(
    protocol: Any, agent: int, now: float, updates: int, name: str, error: BaseException | str, also: str = ""
) -> StepFailure:
    """Return the error about a step that raised one or did not do what it has to: agent, time and the author's line."""
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


def contradiction(
    protocol: Any, function: Callable[..., Any], agent: int, now: float, updates: int, what: str, kind: str = ""
) -> Undeclared:
    """Return the error about a step that has done something else than its protocol declares.

    It says whose step that is, when, and after how many others, what it does, and the kind of the message that is
    declared otherwise; none where it is about `most_steps`.
    """
    declared = f"most_steps, which is {protocol.most_steps()!r}"
    if kind:
        declared = f"sends: {protocol.sends().get(kind, Every()).of(agent)!r} for {kind!r}"
    return Undeclared(
        f"{place_of(function)}: {protocol.problem.task.called(agent)} at time {now:.6g} {what} at its step "
        f"{updates + 1}, against what {type(protocol).__name__} declares by {declared}; declare it, or set decides"
    )


class SingleSteps:
    """The steps of one protocol in one run that are made one by one, each when it is due.

    Its functions are ``step`` and ``react``, or the `PHASES` of an exchange; none for a protocol that makes no steps.
    """

    def __init__(self, protocol: Any, functions: Mapping[str, Callable[..., Any]], tables: StepTables) -> None:
        self.protocol, self.functions, self.tables = protocol, functions, tables
        step = tables.names.messages if tables.names.kinds else {}
        self.messages = {"step": step, "react": step, "request": REQUEST, "respond": RESPOND}
        """What each phase may assign, by name and kind."""
        self._batched = {name for name, function in functions.items() if is_batched(function)}
        self._asks = protocol.asks_for_budget
        self._plain = protocol.releases_rows_plainly
        self._sends: Mapping[str, Every] = {} if protocol.decides else protocol.sends()
        self._is_checked = bool(self._sends) or ("step" in self._batched and not protocol.decides)

    def begin(self, phase: str, me: Peer, updates: int, tick: int, now: float) -> None:
        """Begin a step of an agent."""
        acts = self.protocol.decides or phase in ("start", "react")
        me.open_(self.messages.get(phase, NOTHING), updates, tick, now, acts=acts)

    def make(self, phase: str, me: Peer, *given: Any) -> None:
        """Make a step that has begun: what the agent sends is in ``me.sent_``, and ``me.silent_`` if it was its last.

        Given is the message that an agent reacts to; in an exchange the rank of its partner, and what that has said.
        """
        if phase == "start":
            self.protocol.start(me)
            me.close_()
            return
        function = self.functions.get(phase)
        if function is None:
            return
        if phase in RELEASING and not self._asks and not self._reserves(me):
            me.fall_silent_()
            return
        me.source_.look()
        try:
            over = self.alone(me, function, *given) if phase in self._batched else function(me, *given)
            me.close_(changed=phase not in self._batched)
            if np.ndim(over):
                raise TypeError(f"{place_of(function)} returns {type(over).__name__}: {RETURNED}")
        except (HushnetError, Objection, *INTERRUPTED):
            raise
        except BaseException as error:  # a class of an author's own may derive from it
            raise failure_of(self.protocol, me.agent, me.now, me.updates, phase, error) from error
        if phase in ("request", "respond"):
            self._say_half(phase, me, int(me.neighbours[given[0]]))
            return
        if phase == "step" and self._is_checked:
            self._check_declared(me, function, over=bool(over))
        for name, kind in me.messages_.items() if me.said_ else ():
            if name in me.said_:
                me.say_(kind, me.said_[name])
        if phase == "step" and (over or self.protocol.is_last(me)):
            me.fall_silent_()

    def _check_declared(self, me: Peer, function: Callable[..., Any], *, over: bool) -> None:
        """Refuse a step that sends where nothing is declared; one of a batch, too, that sends less or is the last.

        Other steps may do less than is declared, for nothing was planned by it.
        """
        who, together = (me.agent, me.now, me.updates), "step" in self._batched
        for name, kind in me.messages_.items() if me.degree else ():
            is_due = kind not in self._sends or self._sends[kind].is_due(me.agent, me.updates)
            if name in me.said_ and not is_due:
                raise contradiction(self.protocol, function, *who, f"sends {name}", kind)
            if together and is_due and name not in me.said_ and self.tables.names.width(kind, me.agent):
                raise contradiction(self.protocol, function, *who, f"does not send {name}", kind)
        if over and together and not self._asks:
            raise contradiction(self.protocol, function, *who, "falls silent")

    def _reserves(self, me: Peer) -> bool:
        """Set budget aside for what a step releases; false if its agent cannot afford it."""
        source = me.source_
        return (self._plain and not source.ledger.limited) or source.ledger.reserve(source.release)

    def _say_half(self, phase: str, me: Peer, partner: int) -> None:
        """Send what half of an exchange has assigned; it has to be the one message, to the partner."""
        kind = me.messages_[MESSAGE]
        if MESSAGE in me.said_:
            me.say_(kind, me.said_[MESSAGE], to=partner)
        if me.silent_ and not me.sent_:
            return
        sent = [(one.kind, one.to) for one in me.sent_]
        if sent != [(kind, (partner,))]:
            said = ", ".join(f"{kind!r} to {to or 'everybody'}" for kind, to in sent)
            what = f"it sends exactly one {kind!r} to its partner, agent {partner}, and not {said}" if said else UNSENT
            raise failure_of(self.protocol, me.agent, me.now, me.updates, phase, what)

    def alone(self, me: Peer, function: Callable[..., Any], *given: Any) -> bool:
        """Let an agent call a function of a `batched` step; whether the step was its last.

        It has a batch of one, and assigns what the agent has. Given, in an exchange, are the rank of its partner, and
        what that has said.
        """
        passing: dict[str, Any] = {"updates": me.updates, "tick": me.tick, "now": me.now}
        if given:
            passing["edge"] = self.tables.graph.offsets[me.agent] + given[0]
        columns = {key: np.array([value]) for key, value in passing.items()}
        batch = Batch(self.tables, me.source_, me.agents_, me.messages_, columns)
        over = function(batch, *(heard[None] for heard in given[1:]))
        batch.write_back_()
        me.said_.update(batch.said_)
        return bool(np.any(over))


def function_in(kind: type, name: str) -> Callable[..., Any] | None:
    """A class's step function of this name, with or without ``@staticmethod``; None if it has none."""
    found = inspect.getattr_static(kind, name, None)
    return getattr(found, "__func__", found)


ARGUMENTS = {"step": ("me",), "react": ("me", "message"), "request": ("me", "partner")}
"""What step functions are called with; all others with what was heard beside it, and batched ones without partner."""
VIEWED = ("start", "wake", "receive", "make_request", "make_response", "complete_exchange")
"""Methods on a view and a way out."""


def bound(protocol: Any, name: str) -> Callable[..., Any] | None:
    """A protocol's step function of this name, bound to it if it is a method, with ``self``; None if it has none.

    Raises `InputError` if it cannot be called with what functions of its name are called with; with the line where it
    begins.
    """
    function = vars(protocol).get(name) or function_in(type(protocol), name)
    if function is None:
        return None
    if not callable(function):
        raise InputError(f"{type(protocol).__name__}.{name} is a {type(function).__name__}; it must be a function")
    parameters = list(inspect.signature(function).parameters)
    if parameters[:1] == ["self"]:
        function = function.__get__(protocol)
    check_arguments(name, function)
    return function


def check_form(kind: type) -> None:
    """Refuse a protocol that is written with views, or whose only step has a name that is nearly one.

    Raises `InputError` with what to write, and the line.
    """
    for found in (function_in(kind, name) for name in VIEWED):
        if found is not None and "view" in inspect.signature(found).parameters:
            raise InputError(
                f"{place_of(found)}: methods on view and out are functions of me: start(self, me), step(me), "
                "react(me, message), request(me, partner), respond and complete(me, partner, heard); "
                "see docs/howto-steps"
            )
    if all(function_in(kind, name) is None for name in (*PHASES, "step", "react")):
        for name in vars(kind):
            if meant := difflib.get_close_matches(name, (*PHASES, "step", "react"), 1, 0.75):
                raise InputError(
                    f"{class_place(kind)}: {kind.__name__} has no {meant[0]}; did you mean {name} to be it?"
                )


def check_arguments(name: str, function: Callable[..., Any]) -> None:
    """Refuse a step function that cannot be called with what functions of its name are called with, or that waits."""
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise InputError(f"{place_of(function)}: {name} must not wait: write it without async, await and yield")
    taken, wanted = inspect.signature(function), ARGUMENTS.get(name, ("me", "partner", "heard"))
    if is_batched(function):
        wanted = tuple(one for one in wanted if one != "partner")
    try:
        taken.bind(*wanted)
    except TypeError:
        raise InputError(f"{place_of(function)}: takes {taken}; admissible: {name}({', '.join(wanted)})") from None
