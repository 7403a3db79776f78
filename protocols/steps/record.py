"""The Python form of a text: the record ``me`` of one agent, and a step as `Protocol.wake` and the exchange make it."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...agents.authors import place
from ...agents.errors import INTERRUPTED, HushnetError, Objection, StepFailure, words_of
from ..privacy.mechanisms import Release
from ..view import POST_PROCESSING, Out, View
from .names import MESSAGE, Names
from .noise import UNPERTURBED
from .text import outside, takes_record, texts_of, used_fields
from .words import affords, received

Array = NDArray[np.float64]


class Me:
    """An agent's own things by name, for one step after the other; assignment writes in place.

    What never changes, and arrays that are written in place, are plain attributes; blocks of one number are read anew.
    Numbers are NumPy's: beyond their range they become infinite, as in the compiled form, where Python's would raise.

    Parameters
    ----------
    names : Names
    view : View
        The agent's.
    """

    def __init__(self, names: Names, view: View) -> None:
        one = names.is_number
        put = self.__dict__
        put["_names"], put["_view"] = names, view
        put["_numbers"] = {name: block for name, block in view.state.items() if one(name)}
        put["_blocks"] = {
            **view.state,
            **{name: cast(Array, block)[:, 0] if one(name) else block for name, block in view.edge.items()},
        }
        put["_widths"] = {kind: names.width(kind, view.agent) for kind in names.kinds}
        put.update(_fixed_fields(names, view))
        put.update({name: block for name, block in put["_blocks"].items() if name not in put["_numbers"]})
        self._begin(None, {}, ())

    def _begin(self, release: Release | None, messages: Mapping[str, str], heard: Collection[str]) -> None:
        """Begin a step that may send messages, by name and kind, and that reads these fields of what was heard."""
        put, view, names = self.__dict__, self._view, self._names
        put["_messages"], put["_release"], put["_told"], put["_follows"] = messages, release, {}, False
        put["updates"], put["tick"], put["round"], put["now"] = view.updates, view.tick, view.updates + 1, view.now
        for name in heard:
            if name in names.heard:
                put[name] = np.array(received(self, names.heard[name]))
            else:
                put[name] = view.heard(names.was_heard[name])

    def __getattr__(self, name: str) -> Any:
        """A block of one number."""
        block = self.__dict__["_numbers"].get(name)
        if block is None:
            raise AttributeError(f"an agent has no {name!r}; it has {', '.join(self.__dict__['_names'].all)}")
        return block[0]

    def __setattr__(self, name: str, value: Any) -> None:
        """Write into a block, or say what is to be sent."""
        block = self._blocks.get(name)
        if block is not None:
            block[:] = numbers(name, value)
        elif name == MESSAGE or name in self._names.messages:
            self._told[name] = self._copied(name, value)
        else:
            raise AttributeError(f"me.{name} is not for a step to change")

    def _copied(self, name: str, value: Any) -> Array:
        """A copy of what is assigned to a message."""
        kind = self._messages.get(name)
        if kind is None:
            raise AttributeError(f"nothing is sent here, so there is no me.{name}")
        width, addressed = self._widths[kind], self._names.layout.messages[kind].addressed
        if width == 0 and self._names.is_partial(kind):
            raise ValueError(self._names.unsent(kind))
        message = np.empty((len(self._view.neighbours), width) if addressed else width)
        message[:] = numbers(name, value)
        return message


def numbers(name: str, value: Any) -> Any:
    """What is assigned to a field, if it is real numbers: NumPy would take None for NaN, and text for what it spells.

    Raises
    ------
    TypeError
        If it is anything else.
    """
    kind = np.asarray(value).dtype
    if kind.kind not in "biuf":
        what = f"an array of {kind}" if isinstance(value, np.ndarray) else f"{type(value).__name__}"
        raise TypeError(f"me.{name} takes real numbers, not {what}")
    return value


def _fixed_fields(names: Names, view: View) -> dict[str, Any]:
    """What of an agent never changes."""
    agent, edges = view.agent, names.protocol.problem.graph.edges_of(view.agent)
    return {
        **{name: np.float64(value) if isinstance(value, float) else value for name, value in names.parameters.items()},
        **{name: _fixed(array) for name, array in names.run.items()},
        **{name: _fixed(array[agent]) for name, array in names.per_agent.items()},
        **{name: _fixed(array[edges]) for name, array in names.per_edge.items()},
        "features": view.data.features,
        "labels": view.data.labels,
        "rows": len(view.data.labels),
        "weights": view.weights,
        "degree": len(view.neighbours),
        "regularisation": np.float64(view.regularisation),
        "agent": agent,
    }


def _fixed(array: Any) -> Any:
    """A number, or an array that nobody writes."""
    if np.ndim(array) == 0:
        return np.float64(array)
    view = array.view()
    view.flags.writeable = False
    return view


class PythonSteps:
    """The Python form of one protocol's texts.

    Parameters
    ----------
    protocol : Protocol
    texts : mapping of str to callable
        By name: ``step``, or ``request``, ``respond`` and ``complete``.

    Raises
    ------
    TextError
        If a text names what a record does not have.
    """

    def __init__(self, protocol: Any, texts: Mapping[str, Callable[..., Any]]) -> None:
        self.protocol, self.texts = protocol, texts
        self.names = Names(protocol)
        self._files: set[str] = set()
        self._asks = False
        self._hears: dict[str, set[str]] = {}
        for name, function in texts.items():
            parts = texts_of(function)
            self._files |= {one.file for one in parts}
            known = [outside(one.function, one.names) for one in parts]
            self._asks |= any(value is affords for one in known for value in one.values())
            used = (used_fields(one, self.names) for one in parts if takes_record(one.function))
            heard = {*self.names.heard, *self.names.was_heard}
            self._hears[name] = {field for fields in used for field in fields & heard}
        self._records: dict[int, Me] = {}

    def wake(self, view: View, out: Out) -> None:
        """One step of an agent, as `Protocol.wake`."""
        release = self.protocol.release(view)
        if not self._asks and not out.reserve(release):
            out.fall_silent()
            return
        me = self._record(view)
        me.__dict__["_reserve"] = out.reserve
        over = self._run("step", me, release, self.names.messages if self.names.kinds else {})
        for name in self.names.messages:
            if name in me._told:
                self._send(me, name, me._told[name], release, out)
        if over:
            out.fall_silent()

    def _send(self, me: Me, name: str, message: NDArray[np.float64], release: Release, out: Out) -> None:
        """Send a message to all neighbours, or to each its own."""
        view, kind, under = me._view, self.names.messages[name], self._sent_under(release, me)
        if not self.names.layout.messages[kind].addressed:
            out.send(kind, message, under)
            return
        for neighbour, own in zip(view.neighbours.tolist(), message, strict=True):
            out.send(kind, own, under, to=neighbour)

    def request(self, view: View, partner: int, out: Out) -> None:
        """Open an exchange, as `Protocol.make_request`."""
        self._half("request", view, partner, out)

    def respond(self, view: View, partner: int, vector: NDArray[np.float64], out: Out) -> None:
        """The callee's half, as `Protocol.make_response`."""
        self._half("respond", view, partner, out, vector)

    def complete(self, view: View, partner: int, vector: NDArray[np.float64]) -> None:
        """The caller's half, as `Protocol.complete_exchange`."""
        self._run("complete", self._record(view), None, {}, partner, vector)

    def _half(self, name: str, view: View, partner: int, out: Out, *heard: NDArray[np.float64]) -> None:
        release, me = self.protocol.release(view), self._record(view)
        if not out.reserve(release):
            out.fall_silent()
            return
        kind = "request" if name == "request" else "reply"
        self._run(name, me, release, {MESSAGE: kind}, partner, *heard)
        if MESSAGE not in me._told:
            raise self._failure(view, name, f"{name} sends exactly one message, and has not assigned me.message")
        out.send(kind, me._told[MESSAGE], self._sent_under(release, me), to=int(view.neighbours[partner]))

    def _sent_under(self, release: Release, me: Me) -> Release:
        """What a message is charged as: without noise if its step was to draw some, and has not."""
        view = me._view
        if me._follows and not release.draws:
            return Release.public(view.agent, view.now, POST_PROCESSING, recipients=len(view.neighbours))
        if self.protocol.step_noise is not None and release.noisy and not release.draws:
            return Release.plain(view.agent, view.now, UNPERTURBED)
        return release

    def record(self, view: View, release: Release | None = None) -> Me:
        """The record of an agent, for a step or start in Python that calls what texts are made of.

        Parameters
        ----------
        view : View
        release : Release, optional
            What `perturbed` draws noise for.
        """
        me = self._record(view)
        me._begin(release, {}, ())
        return me

    def _record(self, view: View) -> Me:
        me = self._records.get(view.agent)
        if me is None:
            me = self._records[view.agent] = Me(self.names, view)
        return me

    def _run(self, name: str, me: Me, release: Release | None, messages: Mapping[str, str], *arguments: Any) -> Any:
        me._begin(release, messages, self._hears[name])
        try:
            return self.texts[name](me, *arguments)
        except (HushnetError, Objection, *INTERRUPTED):
            raise
        except BaseException as error:  # a class of an author's own may derive from it
            where = self._line_of(error.__traceback__)
            what = f"{type(error).__name__}: {words_of(error)}"
            raise self._failure(me._view, name, f"{where}: {what}" if where else what) from error

    def _failure(self, view: View, name: str, why: str) -> StepFailure:
        who = self.protocol.problem.task.ids[view.agent]
        return StepFailure(
            f"agent {who!r} at time {view.now:.6g}, after {view.updates} updates: the {name} of "
            f"{type(self.protocol).__name__} failed at {why}"
        )

    def _line_of(self, trace: TracebackType | None) -> str:
        """The last line of the author's that an error came from."""
        lines = [one for one in traceback.extract_tb(trace) if one.filename in self._files]
        return place(lines[-1].filename, lines[-1].lineno or 0) if lines else ""


def text_in(kind: type, name: str) -> Callable[..., Any] | None:
    """A class's text of this name, with or without ``@staticmethod``; None if it has none."""
    found = inspect.getattr_static(kind, name, None)
    return getattr(found, "__func__", found)
