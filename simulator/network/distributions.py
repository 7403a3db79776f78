"""The compiled forms of a network and its clocks: compiled windows draw delays, losses and wake-ups by themselves.

Every kind of latency, loss and clock is asked for its form; one that has none, or inherits it without saying so itself
(`hushnet.agents.compilation.form_of`), runs on the event engine, which asks it for every single delay, loss
and time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...agents.compilation import form_of
from ...agents.errors import InputError
from .clocks import Clock, ClockForm
from .latency import DISTRIBUTIONS, Distribution
from .links import NO_BURSTS, Bursts
from .network import NetworkParameters


class CompiledDistributions(NamedTuple):
    """Compiled forms of a network's delays and losses, and of its clocks."""

    distribution: Distribution
    """Distribution of delays."""
    chance: float
    """Probability that a copy is lost, where it is one number."""
    bursts: Bursts
    """Parameters of links that are good and bad in turn; zeros where they are not."""
    clock: ClockForm


def forms_of(network: NetworkParameters, clock: Clock) -> CompiledDistributions:
    """The compiled forms of a network and its clocks.

    Raises `InputError` if one of them has none; the sentence is the reason why the batched engine declines.
    """
    ticking = form_of(clock, "form")
    if ticking is None:
        raise InputError(f"clocks of the kind {_kind(clock)} have no compiled form")
    return CompiledDistributions(*delays_and_losses(network), ticking)


def forms_or_none(network: NetworkParameters, clock: Clock) -> CompiledDistributions | None:
    """The compiled forms of a network and its clocks; None if one of them has none."""
    try:
        return forms_of(network, clock)
    except InputError:
        return None


def delays_and_losses(network: NetworkParameters) -> tuple[Distribution, float, Bursts]:
    """Those of a network; raises like `forms_of`."""
    distribution = form_of(network.latency, "distribution")
    chance, bursts = form_of(network.loss, "chance"), form_of(network.loss, "bursts")
    if distribution is None or distribution[0] not in DISTRIBUTIONS:
        raise InputError(f"{_kind(network.latency)} delays have no compiled form")
    if chance is None and bursts is None:
        raise InputError(f"losses of the kind {_kind(network.loss)} have no compiled form")
    return distribution, float(chance or 0.0), bursts or NO_BURSTS


def _kind(thing: Any) -> str:
    return str(getattr(thing, "kind", type(thing).__name__))
