"""Planted mistakes: what has to be caught before an epsilon may be trusted.

`LIST` declares single mistakes in mechanisms, protocols, ledger and engine, of the kinds in `KINDS`, each with the
guard that has to catch it: ``tests`` (the files nearest to what is mistaken), ``contract``
(`hushnet.simulator.contract.check_contract`) or ``audit`` (``hushnet audit``). Those in `plans` are in kernels and in
what planned steps alone draw and are charged, those in `step_functions` in steps, and both have to be caught where the
batched engine runs; the rest where steps are made one by one on the event engine, without a comparison with planned
ones (``--form`` asks for the other form, where the mistake shows in it). Every mistake changes behaviour, which a test
asserts, and is planted through public seams (`seams` has those that are likely to move), so that the list outlives
changes of the engine.
"""

from __future__ import annotations

from . import accounts, bounds, leaks, noise, plans, step_functions
from .declarations import FORMS, GUARDS, KINDS, LIST, Form, Guard, Kind, Mutation
from .seams import planted

__all__ = [
    "FORMS",
    "GUARDS",
    "KINDS",
    "LIST",
    "Form",
    "Guard",
    "Kind",
    "Mutation",
    "accounts",
    "bounds",
    "leaks",
    "noise",
    "plans",
    "planted",
    "step_functions",
]
