"""Forms that are compared compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from .texts import compare, pairs, run_once

PAIRS = list(pairs(4, toy=True))


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if "hand" in pair.name], ids=lambda pair: pair.name)
def test_steps_from_texts_are_those_compiled_by_hand(pair):
    mine, other = (run_once(pair, form, 8)[0] for form in (pair.mine, pair.other))
    assert type(mine.protocol) is not type(other.protocol)
    assert mine.activations == other.activations > 50
    models = mine.protocol.models(mine.state)
    assert np.abs(models).max() > 1e-3
    np.testing.assert_allclose(models, other.protocol.models(other.state), rtol=1e-10, atol=1e-13)


def test_private_steps_are_measured_beside_plain_ones_by_turns():
    (pair,) = (pair for pair in PAIRS if pair.name == "coordinate descent, broadcast, gamma / plain")
    worlds = [run_once(pair, form, 4)[0] for form in (pair.mine, pair.other)]
    assert [world.private for world in worlds] == [True, False]
    assert worlds[0].activations == worlds[1].activations
    mine, plain = compare(pair, 2, updates=2)
    assert len(mine) == len(plain) == 2
    assert min(mine + plain) > 0
