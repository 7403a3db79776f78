"""A protocol on every kind of network."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ...agents.availability import Always, Diurnal, OnOff, Window
from ...agents.errors import LimitReached
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.schedule_selection import rounds_of
from ..network.latency import Constant, Exponential, Gamma, Lognormal, Uniform
from ..network.network import Bernoulli, GilbertElliott, NetworkParameters
from ..network.setting import Setting
from .bench import run_small, small_setting
from .violation import ContractViolation


def check_networks(
    protocol: type[Protocol], parameters: ProtocolParameters, *, small: Callable[..., Setting] = small_setting
) -> tuple[str, ...]:
    """The protocol works under every latency, loss and churn, with each way to start in turn; traffic is conserved.

    In rounds nobody joins or leaves, and with the usual schedule a lossy network repeats messages. A protocol may
    refuse networks of a latency under which its agents answer each other's messages without end, but not all of them;
    those latencies are returned, with the sentences with which its runs end.
    """
    latencies = [
        Constant(kind="constant", value=0.0),
        Constant(kind="constant", value=3.0),
        Uniform(kind="uniform", high=1.0),
        Exponential(kind="exponential", mean=2.0),
        Lognormal(kind="lognormal", mean=1.0, sigma=1.5),
        Gamma(kind="gamma", mean=0.5, shape=0.5),
    ]
    losses = [
        Bernoulli(kind="bernoulli", probability=0.0),
        Bernoulli(kind="bernoulli", probability=0.5),
        GilbertElliott(kind="gilbert_elliott", mean_good=2.0, mean_bad=2.0),
    ]
    churn = [
        Always(kind="always"),
        OnOff(kind="on_off", online=0.5, mean_down=1.0),
        OnOff(kind="on_off", online=0.5, mean_down=1.0, distribution="lognormal"),
        Diurnal(kind="diurnal", period=4.0, online=0.5),
        Always(
            kind="always", joins=Window(share=0.5, between=[1.0, 3.0]), leaves=Window(share=0.5, between=[3.0, 6.0])
        ),
    ]
    if rounds_of(protocol.traits_for(parameters), parameters) is not None:
        churn = [kind for kind in churn if kind.joins is None and kind.leaves is None]
    refused: dict[str, str] = {}
    worlds = itertools.product(latencies, losses, churn)
    starts: Any = itertools.cycle(("known", "own", "zero"))
    for (latency, loss, availability), start in zip(worlds, starts, strict=False):
        if repr(latency) in refused:
            continue
        network = NetworkParameters(latency=latency, loss=loss, start=start)
        try:
            world = run_small(protocol, parameters, network=network, availability=availability, small=small)
        except LimitReached as limit:
            refused[repr(latency)] = f"under {latency!r}: {limit}"
            continue
        if not world.traffic.conserved:
            raise ContractViolation(f"traffic is not conserved under {latency!r}, {loss!r}, {availability!r}")
    if len(refused) == len(latencies):
        raise ContractViolation(f"agents answer each other's messages without end {refused[repr(latencies[-1])]}")
    return tuple(refused.values())
