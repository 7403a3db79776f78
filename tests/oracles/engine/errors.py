"""What may end a run."""

from __future__ import annotations


class OracleError(Exception):
    """Anything that ends a run with an error."""


class InputError(OracleError):
    """A description that is not admissible."""

    def __init__(self, message: str, *, field: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.field = field


class Divergence(OracleError):
    """A state, or in a private run what is sent, that became non-finite."""


class Stall(OracleError):
    """A run in rounds in which nobody can go on any more.

    Parameters
    ----------
    agent : int or str
        Id of the agent that waits.
    time : float
    round : int
        The round that can never begin.
    neighbour : int or str
        Whose message it waits for.
    why : {"lost", "gone"}
        The message did not arrive and is not repeated, or its sender went for good before it had sent it.
    """

    def __init__(self, agent: int | str, time: float, round: int, neighbour: int | str, why: str) -> None:
        super().__init__(agent, time, round, neighbour, why)  # SimPy makes copies from these
        self.facts = (str(agent), f"{time:.6g}", round, str(neighbour), why)

    def __str__(self) -> str:
        return "agent {} at time {}: round {} can never begin: agent {}, {}".format(*self.facts)


class LimitReached(OracleError):
    """A run that went beyond a limit on reactions."""
