"""A scenario that Python gives as a mapping is read as a file with the same words would be."""

from __future__ import annotations

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.yaml_source import read_text

SCENARIO = {
    "schema": 1,
    "scenario": "python",
    "task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [5, 5]},
    "topology": {"kind": "complete"},
    "protocols": {"cd": {"kind": "coordinate_descent"}},
    "stop": {"time": 2.0},
}
DEEP = []
for _ in range(5000):
    DEEP = [DEEP]
ROUND = dict(SCENARIO)
ROUND["figures"] = [ROUND]


@pytest.mark.parametrize("letter", ["\ud800", "\0", "\x1b", "\u202e", "\u2066"])
def test_characters_that_no_file_may_have_are_refused(letter):
    sentence = f"the character U\\+{ord(letter):04X} is not allowed in a scenario"
    with pytest.raises(InputError, match=f"scenario: title: {sentence}"):
        load({**SCENARIO, "title": f"a{letter}b"})
    with pytest.raises(InputError, match=sentence):
        read_text(f"title: a{letter}b\n", "x.yaml")
    with pytest.raises(InputError, match=sentence):
        load({**SCENARIO, "protocols": {f"c{letter}": {"kind": "local"}}})


@pytest.mark.parametrize("wrong", [{**SCENARIO, "title": DEEP}, ROUND], ids=["deep", "in itself"])
def test_what_never_ends_is_refused(wrong):
    with pytest.raises(InputError, match="is nested more than 20 levels deep"):
        load(wrong)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (
            "protocols.cd",
            r"sweep\.protocols\.cd: is a whole protocol; name a field of it, such as protocols\.cd\.label",
        ),
        ("protocols", r"sweep\.protocols: names no field of a protocol"),
        ("protocols.dc.mu", r"unknown protocol 'dc'; did you mean 'cd'\?"),
    ],
)
def test_a_sweep_over_no_field_of_a_protocol_says_what_is_missing(path, sentence):
    with pytest.raises(InputError, match=sentence):
        load({**SCENARIO, "sweep": {path: [1, 2]}})
