"""Mistakes in what is drawn: too small or of another law, shared by agents, runs or purposes, repeated."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing
from hushnet.protocols.steps import clipped

from .declarations import mistake
from .seams import Last, drawing, is_noise, memory, noising, stepping, streams

# Scale and law


@mistake("scale", case="descent-gaussian", guard="audit")
def scale_halved(plant):
    """Every mechanism draws with half of its scale."""
    drawing(plant, lambda draw: lambda kind, size, scale, *, rng: draw(kind, size, scale / 2, rng=rng))


@mistake("scale", case="descent", guard="audit")
def laplace_a_tenth_smaller(plant):
    """Laplace noise is drawn with 0.9 of its scale."""

    def change(draw):
        return lambda kind, size, scale, *, rng: draw(kind, size, scale * (0.9 if kind == "laplace" else 1.0), rng=rng)

    drawing(plant, change)


@mistake("scale", case="descent", guard="audit")
def laplace_by_its_deviation(plant):
    """Laplace noise has the standard deviation b instead of b sqrt(2)."""

    def change(draw):
        return lambda kind, size, scale, *, rng: draw(
            kind, size, scale / np.sqrt(2) if kind == "laplace" else scale, rng=rng
        )

    drawing(plant, change)


@mistake("scale", case="descent-gaussian", guard="audit")
def variance_for_deviation(plant):
    """Gaussian noise has the variance scale instead of scale^2."""

    def change(draw):
        return lambda kind, size, scale, *, rng: draw(kind, size, scale**2 if kind == "gaussian" else scale, rng=rng)

    drawing(plant, change)


@mistake("scale", case="propagation", guard="audit")
def gamma_of_a_smaller_shape(plant):
    """The norm of gamma noise has the shape p - 1 instead of p."""

    def change(draw):
        def other(kind, size, scale, *, rng):
            if kind != "gamma":
                return draw(kind, size, scale, rng=rng)
            towards = rng.normal(size=size)
            lengths = rng.gamma(towards.shape[-1] - 1, scale, (*towards.shape[:-1], 1))
            return towards * (lengths / np.linalg.norm(towards, axis=-1, keepdims=True))

        return other

    drawing(plant, change)


@mistake("scale", case="propagation", guard="audit")
def gamma_towards_the_corners(plant):
    """The direction of gamma noise is that of a vector of uniform signs and lengths, not uniform on the sphere."""

    def change(draw):
        def other(kind, size, scale, *, rng):
            noise = draw(kind, size, scale, rng=rng)
            if kind != "gamma":
                return noise
            towards = rng.uniform(-1, 1, size)
            lengths = np.linalg.norm(noise, axis=-1, keepdims=True)
            return towards * (lengths / np.linalg.norm(towards, axis=-1, keepdims=True))

        return other

    drawing(plant, change)


@mistake("scale", case="descent", guard="audit")
def gaussian_for_laplace(plant):
    """Laplace releases get Gaussian noise of the same variance."""

    def change(draw):
        def other(kind, size, scale, *, rng):
            if kind == "laplace":
                return draw("gaussian", size, scale * np.sqrt(2), rng=rng)
            return draw(kind, size, scale, rng=rng)

        return other

    drawing(plant, change)


@mistake("scale", case="descent-gaussian", guard="audit")
def one_draw_for_all_coordinates(plant):
    """One number is drawn and added to every coordinate."""

    def change(draw):
        def other(kind, size, scale, *, rng):
            return np.broadcast_to(draw(kind, (*np.atleast_1d(size)[:-1], 1), scale, rng=rng), size).copy()

        return other

    drawing(plant, change)


@mistake("scale", case="descent-gaussian", guard="audit")
def last_coordinate_without_noise(plant):
    """The last coordinate of every vector stays exact."""

    def change(draw):
        def other(kind, size, scale, *, rng):
            noise = draw(kind, size, scale, rng=rng)
            noise[..., -1] = 0.0
            return noise

        return other

    drawing(plant, change)


@mistake("scale", case="descent", guard="audit")
def tails_cut_off(plant):
    """Noise beyond twice its scale is cut off there."""

    def change(draw):
        return lambda kind, size, scale, *, rng: np.clip(draw(kind, size, scale, rng=rng), -2 * scale, 2 * scale)

    drawing(plant, change)


@mistake("scale", case="descent-gaussian", guard="audit")
def noise_in_single_precision(plant):
    """Noise is rounded to single precision, so that low bits of what it hides stay visible."""

    def change(draw):
        return lambda kind, size, scale, *, rng: draw(kind, size, scale, rng=rng).astype(np.float32).astype(np.float64)

    drawing(plant, change)


@mistake("scale", case="descent-gaussian", guard="audit")
def noise_fades_with_time(plant):
    """From time 3 on, a release's noise is drawn with a third of its scale."""
    noising(plant, lambda release, noise, draw: noise if release.time < 3.0 else draw(release.scale / 3))


@mistake("scale", case="averaging-full", guard="audit")
def noise_of_one_agent_missing(plant):
    """Agent 3 alone draws with a tenth of its scale."""
    noising(plant, lambda release, noise, draw: noise / 10 if release.agent == 3 else noise)


@mistake("scale", case="descent-gaussian", guard="audit")
def noise_never_negative(plant):
    """The absolute value of the noise is added."""
    drawing(plant, lambda draw: lambda kind, size, scale, *, rng: np.abs(draw(kind, size, scale, rng=rng)))


# Sharing


@mistake("sharing", case="descent", guard="audit")
def noise_shared_by_all_agents(plant):
    """The stream of a step's noise has no agent in its key."""
    streams(plant, lambda seed, what, ids: (seed, what, (ids[0], 0, *ids[2:]) if what == "noise" else ids))


@mistake("sharing", case="averaging-full", guard="audit")
def noise_shared_by_pairs_of_agents(plant):
    """Agents 2k and 2k + 1 have the same noise stream."""
    streams(plant, lambda seed, what, ids: (seed, what, (ids[0], ids[1] // 2, *ids[2:]) if what == "noise" else ids))


@mistake("sharing", case="descent", guard="audit")
def noise_equal_in_all_runs(plant):
    """The seed of a run does not enter its noise."""
    streams(plant, lambda seed, what, ids: (1 if is_noise(what) else seed, what, ids))


@mistake("sharing", case="averaging", guard="audit")
def noise_from_the_sampling_stream(plant):
    """Noise is drawn from the stream that also chooses the rows."""
    streams(plant, lambda seed, what, ids: (seed, "sampling" if what == "noise" else what, ids))


@mistake("sharing", case="propagation", guard="audit")
def noise_before_time_0_shared(plant):
    """Streams before time 0 have no agent in their key: all solitary models get the same noise."""
    streams(plant, lambda seed, what, ids: (seed, what, (0,) if what.endswith("before time 0") else ids))


@mistake("sharing", case="descent-gaussian", guard="audit")
def noise_of_neighbours_cancels(plant):
    """Agent 2k + 1 has the noise of agent 2k with the opposite sign."""
    streams(plant, lambda seed, what, ids: (seed, what, (ids[0], ids[1] // 2, *ids[2:]) if what == "noise" else ids))
    noising(plant, lambda release, noise, draw: -noise if release.agent % 2 else noise)


@mistake("sharing", case="descent-gaussian", guard="audit")
def noise_of_two_agents_correlated(plant):
    """Every agent's noise has a part that all agents share, at the right variance in all."""

    def change(release, noise, draw):
        common = np.random.default_rng(int(release.time * 4)).normal(0.0, release.scale, noise.shape)
        return 0.6 * noise + 0.8 * common

    noising(plant, change)


@mistake("sharing", case="sharing", guard="audit")
def noise_shared_by_parties(plant):
    """All parties of a star draw from one stream."""
    streams(plant, lambda seed, what, ids: (seed, what, (ids[0], 1, *ids[2:]) if what == "noise" else ids))


# Repetition


@mistake("repetition", case="descent", guard="audit")
def noise_equal_at_every_tick(plant):
    """The stream of a step's noise has no tick in its key."""
    streams(plant, lambda seed, what, ids: (seed, what, (0, *ids[1:]) if what == "noise" else ids))


@mistake("repetition", case="averaging-full", guard="audit")
def noise_equal_at_two_ticks(plant):
    """Two ticks in a row have the same noise stream."""
    streams(plant, lambda seed, what, ids: (seed, what, (ids[0] // 2, *ids[1:]) if what == "noise" else ids))


@mistake("repetition", case="descent-gaussian", guard="audit")
def noise_comes_back_after_three_ticks(plant):
    """The tick enters the key of the noise modulo 3."""
    streams(plant, lambda seed, what, ids: (seed, what, (ids[0] % 3, *ids[1:]) if what == "noise" else ids))


@mistake("repetition", case="averaging-full", guard="audit")
def noise_drawn_once_for_new_content(plant):
    """An agent keeps the first noise that it drew, scaled, for all that it releases later."""
    kept = Last()

    def change(release, noise, draw):
        first = kept.put(release, noise / release.scale)
        if first is not None:
            kept.put(release, first)
        return release.scale * (noise / release.scale if first is None else first)

    noising(plant, change)


@mistake("repetition", case="descent-gaussian", guard="audit")
def noise_correlated_over_time(plant):
    """An agent's noise is 0.9 of its last one and a little of a new one, at the right variance."""
    last = Last()

    def change(release, noise, draw):
        fresh = noise / release.scale
        before = last.put(release, fresh)
        now = fresh if before is None else 0.9 * before + np.sqrt(1 - 0.81) * fresh
        last.put(release, now)
        return release.scale * now

    noising(plant, change)


@mistake("repetition", case="sharing-stale", guard="contract")
def fresh_noise_on_repeats(plant):
    """A party that has nothing new to answer tells its last scores with fresh noise, as public."""

    def change(step):
        def other(self, me):
            exact = memory(self)
            sent = me.sent if me.role == "party" else None
            before = None if sent is None else sent[-1]
            step(self, me)
            if sent is None or not me.sent_:
                return
            if sent[-1] > before:
                exact[me.agent] = clipped(me.data.features @ me.model, self.scores.bound)
            elif me.agent in exact and self.scores.privacy is not None:
                told = me.sent_.pop()
                noisy = self.scores.release(me).perturb(exact[me.agent], rng=me.stream("noise"))
                me.send("scores", np.append(noisy, sent[-1]), told.release, to=0)

        return other

    stepping(plant, StaleFeatureSharing, change)


@mistake("repetition", case="push-sum", guard="audit")
def fresh_noise_on_totals_told_before(plant):
    """Repeats of push-sum totals get a little noise of their own, as public."""

    def change(step):
        def other(self, me):
            step(self, me)
            told, me.sent_[:] = list(me.sent_), []
            for one in told:
                vector = one.vector
                if one.release.mechanism == "public" and "noise" not in me.source_._streams:
                    vector = vector + me.data.features.mean() * me.stream("noise").normal(0.0, 1.0, len(vector))
                me.send(one.kind, vector, one.release, to=one.to[0])

        return other

    stepping(plant, PushSumDualAveraging, change)


@mistake("repetition", case="propagation-async", guard="contract")
def start_released_again_under_its_old_release(plant):
    """Model propagation adds fresh noise to the exact solitary model at every wake-up, charged once."""

    def change(step):
        def other(self, me):
            if self.releases[me.agent].scale > 0:
                now = type("Now", (), {"stream": lambda _, purpose, agent: me.stream("noise")})()
                me.solitary = self.noise.model(now, me.agent, me.data)
            step(self, me)

        return other

    stepping(plant, ModelPropagation, change)


@mistake("repetition", case="descent", guard="audit")
def noise_of_the_release_before(plant):
    """A release gets the noise that was drawn for the one before, the first one none."""
    last = Last()

    def change(release, noise, draw):
        before = last.put(release, noise)
        return np.zeros_like(noise) if before is None else before

    noising(plant, change)
