"""Counting what is sent: sent = delivered + lost + dropped + in flight, at every event."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Tally:
    """One unit of traffic (vectors or bytes) by fate.

    ``in_flight`` is counted on its own and not derived, so that conservation can be checked.
    """

    sent: int = 0
    delivered: int = 0
    lost: int = 0
    dropped: int = 0
    in_flight: int = 0

    @property
    def conserved(self) -> bool:
        """True if everything that was sent was delivered, lost or dropped, or is in flight."""
        return self.sent == self.delivered + self.lost + self.dropped + self.in_flight


@dataclass
class Traffic:
    """Everything that one run has sent.

    A broadcast to k neighbours is one message and k vectors (times the model-sized vectors that its kind carries).
    Copies per link are what can be lost or dropped: ``links`` counts them. What is exchanged reliably before an
    agent's start is counted apart.
    """

    messages: int = 0
    vectors: int = 0
    overtaken: int = 0
    start_vectors: int = 0
    links: Tally = field(default_factory=Tally)
    bytes: Tally = field(default_factory=Tally)

    @property
    def conserved(self) -> bool:
        """True if both copies and bytes are conserved."""
        return self.links.conserved and self.bytes.conserved
