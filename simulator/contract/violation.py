"""Exception for a protocol that breaks its contract."""

from __future__ import annotations

from ...agents.errors import Objection


class ContractViolation(Objection):
    """A protocol broke the contract; the message says how."""
