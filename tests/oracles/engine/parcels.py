"""What an agent in rounds holds of each neighbour: whole rounds, and parts of rounds that are still under way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .inbox import Message


@dataclass(frozen=True)
class Parcel:
    """What the header of every message of a round says about the round.

    Parameters
    ----------
    kinds : tuple of str
        Kinds of the messages that make up the round, in the order of sending.
    last : bool
        Whether their sender has fallen silent.
    sent_at : float
    """

    kinds: tuple[str, ...]
    last: bool
    sent_at: float


@dataclass
class Line:
    """What an agent has of one neighbour.

    Parameters
    ----------
    shown : int
        Newest round that its inbox has shown.
    last : int, optional
        The neighbour's last round, once it is known to be the last.
    posted : dict of int to Parcel
        By round; read only after a message of the round has arrived.
    held : dict of int to dict of str to Message
        What arrived of rounds that were not shown, by round and kind.
    """

    shown: int = 0
    last: int | None = None
    posted: dict[int, Parcel] = field(default_factory=dict)
    held: dict[int, dict[str, Message]] = field(default_factory=dict)

    def take(self, message: Message) -> bool:
        """Keep an arrival; whether it was of any use."""
        number = message.tick + 1
        if number <= self.shown or message.kind in self.held.get(number, {}):
            return False
        self.held.setdefault(number, {})[message.kind] = message
        if self.whole(number) and self.posted[number].last:
            self.last = number
        return True

    def whole(self, number: int) -> bool:
        """Whether everything of a round is here and was not shown."""
        return number in self.held and len(self.held[number]) == len(self.posted[number].kinds)

    def holds(self, number: int) -> bool:
        """Whether a round, or the last one before it, is here or was shown."""
        return number <= self.shown or self.whole(number) or (self.last is not None and self.last < number)

    @property
    def newest(self) -> int:
        """The newest round that is here or was shown."""
        return max((number for number in self.held if self.whole(number)), default=self.shown)

    def show(self, number: int) -> list[Message]:
        """The messages of a round, which becomes the one shown; nothing if it was shown or is not here."""
        if not self.whole(number):
            return []
        parcel, held = self.posted[number], self.held[number]
        self.shown = number
        for rounds in (self.posted, self.held):
            for old in [other for other in rounds if other <= number]:
                del rounds[old]
        return [replace(held[kind], sent_at=parcel.sent_at) for kind in parcel.kinds]
