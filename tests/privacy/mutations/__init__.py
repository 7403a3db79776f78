"""Planted mistakes: what has to be caught before an epsilon may be trusted.

`LIST` declares single mistakes in mechanisms, protocols, ledger and engine, of the kinds in `KINDS`, each with the
guard that has to catch it: ``tests`` (the files nearest to what is mistaken), ``contract``
(`hushnet.simulator.contract.check_contract`) or ``audit`` (``hushnet audit``). Those in `words` are in compiled
code alone, those in `texts` in steps, and both have to be caught in the compiled form, which the engine runs; the rest
in Python (``--form`` asks for the other form, where the mistake shows in it). Every mistake changes behaviour, which a
test asserts, and is planted through public seams (`seams` has those that are likely to move), so that the list outlives
changes of the engine.
"""

from __future__ import annotations

from . import accounts, bounds, leaks, noise, texts, words
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
    "planted",
    "texts",
    "words",
]
