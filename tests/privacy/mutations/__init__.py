"""Planted mistakes: what has to be caught before an epsilon may be trusted.

`LIST` declares single mistakes in mechanisms, protocols, ledger and engine, of the kinds in `KINDS`, each with the
guard that has to catch it: ``tests`` (the files nearest to what is mistaken), ``contract``
(`hushnet.simulator.contract.check_contract`) or ``audit`` (``hushnet audit``). Every mistake changes behaviour, which a
test asserts, and is planted through public seams (`seams` has those that are likely to move), so that the list outlives
changes of the engine.
"""

from __future__ import annotations

from . import accounts, bounds, leaks, noise
from .declarations import GUARDS, KINDS, LIST, Guard, Kind, Mutation
from .seams import planted

__all__ = ["GUARDS", "KINDS", "LIST", "Guard", "Kind", "Mutation", "accounts", "bounds", "leaks", "noise", "planted"]
