"""However long a scenario is and whatever it says: a bounded answer, and work in proportion, counted in operations."""

from __future__ import annotations

import difflib

import pytest
from hushnet.protocols.algorithms.baselines import LocalParameters
from hushnet.simulator.cli import main
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.scenario import Scenario

BASE = """\
schema: 1
scenario: long
task: {kind: linear_classification, agents: 4, dimension: 2}
topology: {kind: complete}
stop: {time: 5}
"""
LOCAL = "protocols: {local: {kind: local}}\n"
MANY = 1500


def each(template: str, count: int = MANY) -> str:
    return "".join(template.format(i=i, next=(i + 1) % count, before=i - 1) for i in range(count))


LONG = {
    "wrong protocols": ("protocols:\n" + each("  p{i}: {{kind: loca{i}}}\n"), f"and {MANY - 20:,} more"),
    "wrong fields": ("protocols:\n" + each("  p{i}: {{kind: local, x{i}: 1}}\n"), f"and {MANY - 20:,} more"),
    "unknown keys": (LOCAL + each("key{i}: 1\n"), f"and {MANY - 20:,} more"),
    "wrong seeds": (LOCAL + "seeds: [" + each("a{i}, ") + "]\n", f"and {MANY - 20:,} more"),
    "parents that are not there": ("protocols:\n" + each("  p{i}: {{like: q{i}}}\n"), f"and {MANY - 20:,} more"),
    "a chain": (
        "protocols:\n  p0: {kind: local}\n" + each("  q{i}: {{like: q{before}}}\n").replace("q-1", "p0"),
        "100",
    ),
    "a cycle": ("protocols:\n" + each("  p{i}: {{like: p{next}}}\n"), "is a cycle"),
    "axes": (LOCAL + "sweep:\n" + each("  protocols.local.x{i}: [1]\n"), "at most 1,000"),
    "tuned fields": (LOCAL + "tune: {over: {" + each("local.x{i}: [1], ") + "}}\n", "at most 1000"),
    "assignments": (LOCAL + "quick: {" + each("protocols.local.x{i}: 1, ") + "}\n", "at most 1,000"),
    "one long word": (LOCAL + "? " + "a" * 50_000 + "\n: 1\n", "unknown field"),
    "one long kind": ("protocols: {local: {kind: " + "local" * 10_000 + "}}\n", "unknown protocol"),
    "too many runs": (LOCAL + "seeds: 100000\nsweep: {network.loss: {from: 0, to: 0.9, step: 0.01}}\n", "1,000,000"),
}


def answer(tmp_path, capsys, text):
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    code = main(["check", str(tmp_path / "s.yaml")])
    captured = capsys.readouterr()
    return code, captured.err or captured.out


@pytest.mark.parametrize("name", sorted(LONG))
def test_a_long_list_of_mistakes_has_a_bounded_answer(tmp_path, capsys, monkeypatch, name):
    compared = 0
    before = difflib.get_close_matches

    def counted(word, options, *args, **named):
        nonlocal compared
        compared += len(options)
        return before(word, options, *args, **named)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    text, says = LONG[name]
    code, said = answer(tmp_path, capsys, BASE + text)
    assert code == 2, said
    lines = said.splitlines()
    assert len(lines) <= 21
    assert max(map(len, lines)) <= 2_000
    assert says in said
    assert compared < 50 * MANY, "words compared for suggestions"


@pytest.mark.parametrize(
    "line",
    [
        'title: "\\UFFFFFFFF"',
        'title: "\\uD800"',
        'title: "\\0"',
        "seeds: 0x" + "f" * 6000,
        "seeds: 1" + "0" * 400,
        "validation: 1" + "0" * 400,
        "seeds: -1" + "0" * 30,
        "seeds: [1" + "0" * 4000 + "]",
    ],
)
def test_what_no_number_or_character_is_has_a_sentence(tmp_path, capsys, line):
    code, said = answer(tmp_path, capsys, BASE + LOCAL + line + "\n")
    assert code == 2
    assert "s.yaml:7: " in said
    assert said.count("\n") == 1
    assert len(said) < 400


@pytest.fixture
def validations(monkeypatch):
    """How often a whole scenario, and a protocol's entry, is validated."""
    counts = {"scenario": 0, "protocol": 0}

    def counted(model, name):
        before = model.model_validate

        def validate(*args, **named):
            counts[name] += 1
            return before(*args, **named)

        monkeypatch.setattr(model, "model_validate", validate)

    counted(Scenario, "scenario")
    counted(LocalParameters, "protocol")
    return counts


def test_a_point_of_a_sweep_is_checked_by_what_it_changes(validations):
    data = {
        "schema": 1,
        "scenario": "long",
        "task": {"kind": "linear_classification", "agents": 4, "dimension": 2},
        "topology": {"kind": "complete"},
        "protocols": {"a": {"kind": "local"}, "b": {"like": "a"}, "c": {"kind": "local", "label": "C"}},
        "stop": {"time": 5},
        "sweep": {"network.loss": [i / 1000 for i in range(900)]},
    }
    loaded = load(data)
    assert len(loaded.points) == 900
    assert [point.scenario.network.loss.probability for point in loaded.points[:3]] == [0.0, 0.001, 0.002]
    assert validations == {"scenario": 1, "protocol": 3}
    assert loaded.points[0].scenario.protocols is loaded.points[1].scenario.protocols
    swept = load({**data, "sweep": {"protocols.a.label": [f"A{i}" for i in range(10)]}})
    assert validations == {"scenario": 2, "protocol": 6 + 10}, "a; b, which is like it, has a label of its own"
    load({**data, "sweep": {"protocols.a.label": [f"A{i}" for i in range(10)], "network.loss": [0.0, 0.1, 0.2]}})
    assert validations == {"scenario": 3, "protocol": 9 + 20}, "once for each entry, however many points have it"
    assert swept.points[3].scenario.protocols["a"].label == "A3"
