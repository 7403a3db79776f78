"""Arithmetic of whole numbers, compiled, where it would come to something else than Python's: refused, or as there.

By numba a whole number divided by zero is 0, and so is one to a negative power; everything else is as it finds it.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.extending import overload

from ...agents.compilation.compiled import INLINED

ZERO = "division of a whole number by zero"
NO_POWER = "a whole number to the power of another may be none; write one of them as a float"


def divided(a, b):  # noqa: ARG001 - as compiled
    """``a // b``; the forms of all of these are named here, for what is compiled is stored by all that it mentions."""
    return _divided_whole, _divided, _form_of_divided


def remainder(a, b):  # noqa: ARG001 - as compiled
    """``a % b``."""
    return _remainder_whole, _remainder, _form_of_remainder


def power(a, b):  # noqa: ARG001 - as compiled
    """``a ** b``, of which the exponent is known at run time."""
    return _power, _form_of_power


def inverse_power(a, b):  # noqa: ARG001 - as compiled
    """``a ** b``, of which the exponent is a negative whole number."""
    return _inverse_whole, _power, _form_of_inverse


FORMS = {f"hushnet_{one.__name__}": one for one in (divided, remainder, power, inverse_power)}
"""By the names that stand for operators in a rewritten text (`hushnet.protocols.steps.rewriting`)."""


def _whole(*kinds: Any) -> bool:
    return all(isinstance(kind, types.Integer) for kind in kinds)


def _form_of_divided(a, b):
    """The form of `divided` for these types."""
    return _divided_whole if _whole(a, b) else _divided


def _form_of_remainder(a, b):
    """The form of `remainder` for these types."""
    return _remainder_whole if _whole(a, b) else _remainder


def _form_of_power(a, b):
    """The form of `power` for these types."""
    if _whole(a, b):
        raise TypingError(NO_POWER)
    return _power


def _form_of_inverse(a, b):  # noqa: ARG001 - as `inverse_power`
    """The form of `inverse_power` for these types."""
    return _inverse_whole if _whole(a) else _power


_overload: Any = overload
for _made, _form in (
    (divided, _form_of_divided),
    (remainder, _form_of_remainder),
    (power, _form_of_power),
    (inverse_power, _form_of_inverse),
):
    _overload(_made, jit_options=INLINED)(_form)


def _divided_whole(a, b):  # pragma: no cover - compiled
    if b == 0:
        raise ZeroDivisionError(ZERO)
    return a // b


def _divided(a, b):  # pragma: no cover - compiled
    return a // b


def _remainder_whole(a, b):  # pragma: no cover - compiled
    if b == 0:
        raise ZeroDivisionError(ZERO)
    return a % b


def _remainder(a, b):  # pragma: no cover - compiled
    return a % b


def _power(a, b):  # pragma: no cover - compiled
    return a**b


def _inverse_whole(a, b):  # pragma: no cover - compiled
    if a == 0:
        raise ZeroDivisionError(ZERO)
    return (1.0 * a) ** b
