"""Gossip averaging of values that were made noisy once: the honest way, and ways to cheat with it."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.privacy.mechanisms import Release


class NoisyGossipParameters(ProtocolParameters):
    kind: str = "noisy_gossip"


class NoisyGossip(Protocol):
    """Every agent perturbs the mean of its labels once; pairs then average what they hold, which costs nothing more."""

    Parameters = NoisyGossipParameters
    traits = Traits(exchange="pairwise", unanswered="give_up")

    def layout(self):
        return Layout(agent={"model": 1}, messages={"request": MessageKind(1), "reply": MessageKind(1)})

    def start(self, view, out):
        if not len(view.data):
            return
        bound = 2.0 / len(view.data)
        terms = {"sensitivity": bound, "sensitivity_source": "clip", "verified_sensitivity": bound, "scale": 2 * bound}
        release = Release(
            view.agent, view.now, "laplace", "l1", **terms, claimed_epsilon=0.5, claimed_delta=0.0, recipients=1
        )
        out.reserve(release)
        mean = np.clip(view.data.labels, -1.0, 1.0).mean(keepdims=True)
        view.state["model"][:] = release.perturb(mean, rng=view.stream("noise"))
        out.disclose(release)

    def told(self, view, out):
        """What the value that is sent reveals: nothing but what was charged at the start."""
        return out.post_processing() if len(view.data) or view.state["model"].any() else out.public("no data, still 0")

    def make_request(self, view, partner, out):
        out.send("request", view.state["model"], self.told(view, out), to=int(view.neighbours[partner]))

    def make_response(self, view, partner, vector, out):
        out.send("reply", view.state["model"], self.told(view, out), to=int(view.neighbours[partner]))
        view.state["model"][:] = (view.state["model"] + vector) / 2

    def complete_exchange(self, view, partner, vector):
        view.state["model"][:] = (view.state["model"] + vector) / 2


class RemembersItsMean(NoisyGossip):
    """Pulls the average back to the exact mean, and calls that processing."""

    def make_response(self, view, partner, vector, out):
        super().make_response(view, partner, vector, out)
        if len(view.data):
            view.state["model"][:] += 1e-3 * np.clip(view.data.labels, -1.0, 1.0).mean()


class NeverCharges(NoisyGossip):
    """Leaves out the charge for its noisy value."""

    def start(self, view, out):
        out.disclose = lambda release: None
        super().start(view, out)
