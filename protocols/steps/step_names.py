"""Names in the record ``me`` of a step: of one agent, and of a batch of B agents with R edges in all.

In a batch, vectors of agents are rows and their numbers columns; what belongs to edges has a row for each, one agent's
edges after the other's. Shapes of both stand side by side.

===========================  ================  ============  ==========================================================
name                         of one agent      in a batch    what it is
===========================  ================  ============  ==========================================================
blocks of `Layout.agent`     (width,), or a    (B, width)    the agent's state; ``me.model = v`` writes it. Where the
                             number                          task has one feature only, blocks of width 1 are vectors
                                                             of one number
blocks of `Layout.edge`      (degree, width)   (R, width)    state of the agent's outgoing edges; (degree,) where the
                                                             width is 1 for everybody. It may differ by agent, but not
                                                             between edges of one agent
fields of the parameters     as they are       as they are   numbers, strings and switches, as the scenario gives
                                                             them, unless something else has the name
`Constants.run`              as they are       as they are   what `Protocol.constants` computes for all,
`Constants.agent`            a number, (k,)    (B, 1),       for each agent,
                                               (B, k)
`Constants.edge`             (degree,),        (R, 1),       and for each directed edge
                             (degree, k)       (R, k)
``features``, ``labels``     (m, p), (m,)      none          the agent's own rows: where the task splits features, its
                                                             columns of all rows, and the centre alone has ``labels``.
                                                             Batches read them by operators alone
``data``                     a `Shard`         none          the same rows, as `Protocol.local_data` gives them
``rows``, ``degree``         a number          (B, 1)        how many rows, and how many neighbours, it has
``neighbours``               (degree,)         (R, 1)        its neighbours in ascending order
``weights``                  (degree,)         (R, 1)        W_ij of its neighbours in ascending order
``regularisation``           a number          (B, 1)        its lambda_i
``heard``                    (degree, width)   (R, width)    the newest vector of each neighbour when the step began;
                                                             who was never heard shows the agent's own block
                                                             (`MessageKind.mirrors`), or zeros
``was_heard``                (degree,)         (R, 1)        whether each neighbour was ever heard
``message``                  (width,)          (B, width)    what all neighbours are sent; a step that does not assign
                                                             it sends nothing. Of a kind that is
                                                             `MessageKind.addressed`, what each neighbour is sent:
                                                             (degree, width), or (R, width)
``heard_KIND``, ...          likewise          likewise      with ``was_heard_KIND``, ``is_new_KIND``, ``age_KIND`` and
                                                             ``message_KIND``, where steps have several kinds of
                                                             messages; without a kind, what was heard is of the first
                                                             one. Who sends no messages of a kind that others send is
                                                             heard as zeros
``is_new``                   (degree,)         (R, 1)        whether each neighbour was heard anew since the agent's
                                                             last step; at its first, whether it was heard at all
                                                             (`Protocol.asks_what_is_new`)
``age``                      (degree,)         (R, 1)        time since what was heard of each neighbour was sent;
                                                             infinite if nothing was
``is_open``                  (degree,)         (R, 1)        whether the agent sends over each of its edges at this
                                                             step: those that go out, or some of them where the graph
                                                             changes
``updates``, ``tick``        a number          (B, 1)        steps that the agent has completed, and the tick of its
                                                             clock
``round``                    a number          (B, 1)        the round that the step belongs to, from 1 on (only
                                                             behind a neighbour barrier)
``now``                      a number          (B, 1)        time in expected wake-ups of a rate-1 agent
``agent``                    a number          (B, 1)        its index
``role``                     text              (B, 1)        what it is (`Layout.roles`); by default ``peer`` or, where
                                                             there are adversaries, ``honest`` or ``byzantine``
``messages``                 a list            none          what arrived since its last step (inbox ``every`` only)
``send(kind, vector)``, ...  a way out         none          in starts, reactions and steps that decide:
                                                             `hushnet.protocols.steps.peer.Peer`
``where(mask)``              none: use if      a record      the same record for some of the agents, by a (B, 1) mask;
                                                             blocks that are assigned there are written for them alone,
                                                             and they alone draw
``here``                     none: its rank    the edge      in an exchange, what each agent has of the edge that it
                             is ``partner``                  meets: (B, width) of each edge block, which may be
                                                             assigned, (B, 1) or (B, k) of edge constants, ``weight``
===========================  ================  ============  ==========================================================

All numbers are float64, but for indices and counts. A step that returns true was the agent's last: it takes no further
steps, as `Protocol.most_steps` declares where steps are planned. What is not there ends the run with the author's line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agents.authors import place_of
from ...agents.errors import words_of

OWN = ("features", "labels", "data", "rows", "neighbours", "weights", "degree", "regularisation", "agent", "role")
"""What every agent has, and nobody writes."""
HEARD = ("heard", "was_heard", "is_new", "age")
"""What there is of each neighbour's messages."""
PASSING = (*HEARD, "is_open", "messages", "updates", "tick", "round", "now")
"""What changes from step to step."""
ACTIONS = ("send", "reserve", "disclose", "fall_silent", "stream", "public", "plain", "post_processing")
"""What an agent may call at starts, in reactions, and in steps that decide."""
MESSAGE = "message"


@dataclass(frozen=True)
class Constants:
    """Public constants that steps read, computed once."""

    run: Mapping[str, ArrayLike] = field(default_factory=dict)
    """The same for all agents."""
    agent: Mapping[str, ArrayLike] = field(default_factory=dict)
    """mapping of str to (n,) or (n, k) array: A number or a vector for each agent."""
    edge: Mapping[str, ArrayLike] = field(default_factory=dict)
    """mapping of str to (E,) or (E, k) array: A number or a vector for each directed edge, owned by its tail."""


class Names:
    """Names in the record of one protocol's steps, and what each of them stands for.

    The protocol is prepared. Raises TypeError if two things have one name, or a constant is no number or has another
    shape than agents or edges.
    """

    def __init__(self, protocol: Any) -> None:
        self.protocol, self.layout = protocol, protocol.layout()
        graph = protocol.problem.graph
        made = protocol.constants()
        try:
            self.run = {name: np.asarray(value, dtype=np.float64) for name, value in made.run.items()}
            self.per_agent = {name: _per(name, value, graph.agents, "agents") for name, value in made.agent.items()}
            self.per_edge = {name: _per(name, value, len(graph.heads), "edges") for name, value in made.edge.items()}
        except (AttributeError, TypeError, ValueError) as error:
            unlike = f"must give Constants, not {type(made).__name__}"
            wrong = words_of(error) if isinstance(made, Constants) else unlike
            raise TypeError(f"{place_of(type(protocol).constants)}: {wrong}") from error
        given = protocol.parameters
        self.parameters: dict[str, Any] = {name: getattr(given, name) for name in type(given).model_fields}
        for name in ("kind", "label", "schedule", "tuned", "privacy"):
            self.parameters.pop(name, None)
        self.kinds = tuple(self.layout.messages)
        pairwise = protocol.traits_for(protocol.parameters).exchange == "pairwise"
        several = len(self.kinds) > 1 and not pairwise
        self.messages = {MESSAGE: self.kinds[0] if self.kinds else ""}
        if several:
            self.messages = {f"{MESSAGE}_{kind}": kind for kind in self.kinds}
        in_sessions = [self.kinds.index(kind) for kind in ("request", "reply") if pairwise and kind in self.kinds]
        # What sessions carry is handed over, and not read from what is known.
        self.heard_kinds = self.kinds[: min(in_sessions, default=len(self.kinds))]
        self.heard = {f"{what}_{kind}": (what, kind) for what in HEARD for kind in self.kinds if several}
        self.heard |= {what: (what, kind) for what in HEARD for kind in self.heard_kinds[:1]}
        self._check(f"{place_of(type(protocol).layout)}: {type(protocol).__name__}:")

    def _check(self, name: str) -> None:
        sources = {
            "every agent has": list(dict.fromkeys([*OWN, *PASSING, *ACTIONS, *self.heard, *self.messages])),
            "is a block of agents": self.layout.agent,
            "is a block of edges": self.layout.edge,
            "is a constant": [*self.run, *self.per_agent, *self.per_edge],
        }
        seen: dict[str, str] = {}
        for what, names in sources.items():
            for one in names:
                if one in seen:
                    raise TypeError(f"{name} me.{one} {what}, and something that {seen[one]}; rename one of them")
                if one.startswith("_") or one.endswith("_"):
                    raise TypeError(f"{name} {one!r} {what}; names neither begin nor end with an underscore")
                seen[one] = what
        self.parameters = {one: value for one, value in self.parameters.items() if one not in seen}
        self.all = [*(one for one in seen if one not in ACTIONS), *self.parameters]

    @property
    def given(self) -> set[str]:
        """Names that the protocol gives beside its blocks: constants and parameters."""
        return {*self.run, *self.per_agent, *self.per_edge, *self.parameters}

    def is_number(self, block: str) -> bool:
        """True if a block has one number for each agent or edge, and not a vector of a task with one feature."""
        width = {**self.layout.agent, **self.layout.edge}[block]
        return isinstance(width, int | np.integer) and width == 1 and self.protocol.problem.task.dimension > 1

    @cached_property
    def roles(self) -> NDArray[np.str_]:
        """(n,) what each agent is (`Layout.roles`)."""
        roles = self.layout.roles
        return np.full(self.protocol.problem.graph.agents, "peer") if roles is None else np.array(roles)

    @property
    def writable(self) -> set[str]:
        """Names that a step may assign."""
        return {*self.layout.agent, *self.layout.edge, *self.messages}

    def width(self, kind: str, agent: int) -> int:
        """Numbers that an agent's message of a kind carries."""
        return int(self.sent_widths[kind][agent])

    @cached_property
    def sent_widths(self) -> dict[str, NDArray[np.int64]]:
        """Count by kind the (n,) numbers that each agent's message carries; 0 for those who send none."""
        agents, kinds = self.protocol.problem.graph.agents, self.layout.messages.items()
        return {name: np.array(np.broadcast_to(np.asarray(kind.width), (agents,)), np.int64) for name, kind in kinds}

    def is_partial(self, kind: str) -> bool:
        """True if some agents send no messages of a kind that others send."""
        widths = self.sent_widths[kind]
        return bool(widths.any() and not widths.all())

    @staticmethod
    def unsent(kind: str) -> str:
        """Return the error message about a step that sends a message of a kind which its agent does not have."""
        return f"the layout has no message of kind {kind!r} for this agent to send"

    @cached_property
    def heard_widths(self) -> dict[str, NDArray[np.int64]]:
        """Count by kind the (n,) numbers of the longest message that each agent may hear from a neighbour."""
        graph, found = self.protocol.problem.graph, {}
        for kind, widths in self.sent_widths.items():
            found[kind] = np.zeros(graph.agents, dtype=np.int64)
            np.maximum.at(found[kind], graph.tails, widths[graph.heads])
            if (widths == widths[:1]).all():
                found[kind] = widths  # of agents without neighbours, too
        return found


def _per(name: str, value: ArrayLike, count: int, what: str) -> np.ndarray:
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.ndim not in (1, 2) or len(array) != count:
        raise TypeError(f"{name} has the shape {array.shape}, and there are {count} {what}")
    return array
