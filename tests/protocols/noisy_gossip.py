"""Gossip averaging of values that were made noisy once: the honest way, and ways to cheat with it."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.privacy.mechanisms import Release


class NoisyGossipParameters(ProtocolParameters):
    kind: str = "noisy_gossip"


class NoisyGossip(Protocol):
    """Every agent perturbs the mean of its labels once; pairs then average what they hold, which costs nothing more."""

    decides = True
    asks_for_budget = True

    Parameters = NoisyGossipParameters
    traits = Traits(exchange="pairwise", unanswered="give_up")

    def layout(self):
        return Layout(agent={"model": 1}, messages={"request": MessageKind(1), "reply": MessageKind(1)})

    def start(self, me):
        if not len(me.data):
            return
        bound = 2.0 / len(me.data)
        terms = {"sensitivity": bound, "sensitivity_source": "clip", "verified_sensitivity": bound, "scale": 2 * bound}
        release = Release(
            me.agent, me.now, "laplace", "l1", **terms, claimed_epsilon=0.5, claimed_delta=0.0, recipients=1
        )
        me.reserve(release)
        mean = np.clip(me.data.labels, -1.0, 1.0).mean(keepdims=True)
        me.model = release.perturb(mean, rng=me.stream("noise"))
        me.disclose(release)

    def told(self, me):
        """What the value that is sent reveals: nothing but what was charged at the start."""
        return me.post_processing() if len(me.data) or me.model.any() else me.public("no data, still 0")

    def request(self, me, partner):
        me.send("request", me.model, self.told(me), to=int(me.neighbours[partner]))

    def respond(self, me, partner, vector):
        me.send("reply", me.model, self.told(me), to=int(me.neighbours[partner]))
        me.model = (me.model + vector) / 2

    def complete(self, me, partner, vector):
        me.model = (me.model + vector) / 2


class RemembersItsMean(NoisyGossip):
    """Pulls the average back to the exact mean, and calls that processing."""

    def respond(self, me, partner, vector):
        super().respond(me, partner, vector)
        if len(me.data):
            me.model += 1e-3 * np.clip(me.data.labels, -1.0, 1.0).mean()


class NeverCharges(NoisyGossip):
    """Leaves out the charge for its noisy value."""

    def start(self, me):
        vars(me)["disclose"] = lambda release: None
        super().start(me)
