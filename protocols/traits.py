"""Traits of a protocol, by which an engine runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Trigger = Literal["wake", "round", "message"]
Keeping = Literal["latest", "per_round", "every"]
Exchange = Literal["broadcast", "pairwise"]
Unanswered = Literal["repeat", "give_up"]


@dataclass(frozen=True)
class Traits:
    """Traits of a protocol, by which an engine runs it; raises ValueError if one of them is something else."""

    trigger: Trigger = "wake"
    """{"wake", "round", "message"}: What starts a step: the agent's clock, a complete round of neighbours' messages, or
    also every arrival (``react``)."""
    inbox: Keeping = "latest"
    """{"latest", "per_round", "every"}: What an agent keeps of the messages it receives: the newest by order of
    sending, one per round, or every one until its next step (``me.messages``)."""
    exchange: Exchange = "broadcast"
    """{"broadcast", "pairwise"}: Whether a step sends to its neighbours or opens a session with one of them
    (``request``, ``respond``, ``complete``), which needs an undirected graph that does not change."""
    unanswered: Unanswered | None = None
    """{"repeat", "give_up"}: What a caller does about a session that stays unanswered. ``repeat``: it repeats the same
    request until it is answered, so that every session that changed the callee also changes the caller. ``give_up``: it
    closes the session after a timeout; the protocol then tolerates that a callee may have made its half of the exchange
    alone (gossip averaging would lose its mean). By default, protocols with edge blocks repeat, others give up."""
    central: bool = False
    """Whether starts are computed in one place, from what all agents disclose of their data (``me.disclose``), in place
    of messages. Results say so."""
    needs_both_ends: bool = False
    """Whether a step is right only if both ends of an edge make it with values of the same round: what one end adds the
    other takes away, or a reply belongs to one question. Such a protocol is never run with ``patience``, with which an
    end goes on with an older round and the two never make up for the difference."""
    directed: bool = False
    """Whether it is right on directed graphs, where an agent does not hear everybody that it sends to."""
    changing: bool = False
    """Whether it is right on graphs that change, where an agent does not send to all its neighbours at each step: it
    sees by ``me.is_new`` who has sent."""
    instead: str | None = None
    """What a refusal of ``patience`` names beside ``resend_after``: a protocol that needs no rounds."""

    def __post_init__(self) -> None:
        kinds = {"trigger": Trigger, "inbox": Keeping, "exchange": Exchange, "unanswered": Unanswered}
        for name, kind in kinds.items():
            given, admissible = getattr(self, name), get_args(kind)
            if given not in admissible and not (name == "unanswered" and given is None):
                raise ValueError(f"Traits: {name} = {given!r}: admissible: {', '.join(admissible)}")
        if self.exchange == "pairwise" and (self.directed or self.changing):
            name = "directed" if self.directed else "changing"
            raise ValueError(
                f"Traits: {name} = True: an exchange in pairs needs edges that stay, for messages both ways"
            )
