"""Layout of a protocol: blocks of its agents and edges, and the kinds of messages that they exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..agents.blocks import Width, whole_widths


@dataclass(frozen=True)
class MessageKind:
    """A kind of message.

    Parameters
    ----------
    width : int or (n,) sequence of int
        Numbers it carries: one, or one per sender.
    mirrors : str, optional
        The agent block that it shows to others. A neighbour that was never heard is taken to agree with the agent's
        own block (under ``network.start: own``, or before a late neighbour joins).
    vectors : int
        Model-sized vectors that one message counts as in the traffic.
    addressed : bool
        Whether a step sends every neighbour a vector of its own: its message is (degree, width) then.
    """

    width: Width
    mirrors: str | None = None
    vectors: int = 1
    addressed: bool = False

    def __post_init__(self) -> None:
        whole_widths(self.width)


@dataclass(frozen=True)
class Layout:
    """Blocks and message kinds of a protocol; all blocks start at zero.

    Parameters
    ----------
    agent : mapping of str to Width
        Blocks of each agent; the block ``model`` is what the recorder measures by default.
    edge : mapping of str to Width
        Blocks of each directed edge, owned by its tail.
    messages : mapping of str to MessageKind
    roles : (n,) sequence of str, optional
        What each agent is (party, centre); everybody is a ``peer`` by default.
    """

    agent: Mapping[str, Width]
    edge: Mapping[str, Width] = field(default_factory=dict)
    messages: Mapping[str, MessageKind] = field(default_factory=dict)
    roles: Sequence[str] | None = None
