"""The random stream that a step is given draws numbers and refuses its inner state, watched or not."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hushnet.protocols.privacy.mechanisms import AgentStream, WatchedStream
from hushnet.simulator.contract.transcript import Recording

ASKED = {
    "bit_generator": lambda stream: stream.bit_generator,
    "_bit_generator": lambda stream: stream._bit_generator,
    "its state": lambda stream: stream.bit_generator.state,
    "state": lambda stream: stream.state,
    "spawn": lambda stream: stream.spawn(1),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "__getstate__": lambda stream: stream.__getstate__(),
    "__setstate__": lambda stream: stream.__setstate__({}),
    "__reduce__": lambda stream: stream.__reduce__(),
    "a subclass of it": lambda stream: type("Mine", (AgentStream,), {})(stream),
}
STREAMS = {
    "in a run": AgentStream,
    "in a replay": lambda stream: WatchedStream(stream, Recording()),
}


@pytest.mark.parametrize("where", STREAMS)
@pytest.mark.parametrize("asked", ASKED)
def test_a_stream_refuses_its_inner_state(asked, where):
    with pytest.raises(TypeError, match=r"a step's random stream is for drawing only: its state cannot be read"):
        ASKED[asked](STREAMS[where](np.random.default_rng(4)))


@pytest.mark.parametrize("where", STREAMS)
def test_a_stream_of_a_step_draws_the_numbers_of_its_generator(where):
    stream, plain = STREAMS[where](np.random.default_rng(4)), np.random.default_rng(4)
    assert np.array_equal(stream.normal(size=9), plain.normal(size=9))
    assert np.array_equal(stream.choice(50, 7, replace=False), plain.choice(50, 7, replace=False))
    assert np.array_equal(stream.permutation(8), plain.permutation(8))


@pytest.mark.parametrize("where", STREAMS)
def test_nothing_can_be_put_in_place_of_what_a_stream_draws(where):
    with pytest.raises(AttributeError):
        STREAMS[where](np.random.default_rng(4)).normal = lambda *_: 0.0
