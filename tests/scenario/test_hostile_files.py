"""Hostile text and files: one sentence, bounded work, nothing written, and text stays what it is."""

from __future__ import annotations

import bz2
import difflib
import gzip
import json
import lzma
import shutil

import pandas as pd
import pytest
from hushnet.agents.errors import InputError, LimitReached
from hushnet.agents.input_files import read_within
from hushnet.agents.tasks.csv_reader import read_columns
from hushnet.protocols.algorithms.baselines import LocalParameters
from hushnet.simulator.api import run
from hushnet.simulator.cli import main
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.scenario import Scenario
from hushnet.simulator.language.yaml_source import read_text
from hushnet.simulator.storage.files import read_json

BASE = {
    "schema": "1",
    "scenario": "hostile",
    "task": "{kind: linear_classification, agents: 4, dimension: 2, samples: [5, 5], test_samples: 2}",
    "topology": "{kind: complete}",
    "protocols": "{local: {kind: local}}",
    "stop": "{time: 1}",
    "record": "{every: 1.0, metrics: [accuracy]}",
}


def test_ids_of_any_length_stay_text(tmp_path, capsys):
    rows = "".join(f"{i % 3}.5,{i % 2},{str(i % 2 + 1) * 5000}\n" for i in range(20))
    (tmp_path / "data").write_text("x,y,who\n" + rows)
    task = "{kind: csv, path: data, label: y, agent: who}"
    text = "".join(f"{key}: {entry}\n" for key, entry in {**BASE, "task": task}.items())
    (tmp_path / "s.yaml").write_text(text)
    assert main(["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), "--quiet"]) == 0


def bomb(packer, times):
    """Megabytes of blank lines, packed."""
    return packer.compress(b"label,agent,x\n" + b"\n" * 2**20 * times)


@pytest.mark.parametrize(("packer", "ending"), [(bz2, "bz2"), (gzip, "gz"), (lzma, "xz")])
def test_a_file_that_holds_hundreds_of_times_its_size_is_refused_while_it_is_read(packer, ending, tmp_path):
    file = tmp_path / f"rows.csv.{ending}"
    file.write_bytes(bomb(packer, 12))
    with pytest.raises(InputError, match="which no table is packed to"):
        read_columns(file)


def test_seconds_count_while_data_are_read(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("label,agent,x\n" + "\n" * 2**20)
    with pytest.raises(LimitReached, match=r"rows\.csv: could not be read within 0\.01 s"), read_within(0.01):
        read_columns(file)
    with pytest.raises(InputError, match="has a header line only"), read_within(1000):
        read_columns(file)


def test_a_run_whose_data_take_longer_than_its_limit_is_one_sentence(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("label,agent,x\n" + "\n" * 2**20 + "1,a,2\n0,b,1\n" * 4)
    (tmp_path / "s.yaml").write_text(
        "schema: 1\nscenario: s\ntask: {kind: csv, path: rows.csv, label: label, agent: agent}\n"
        "topology: {kind: complete}\nprotocols: {a: {kind: local}}\nstop: {time: 1}\nseeds: 1\n"
        "limits: {seconds: 0.01}\n"
    )
    assert main(["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "r"), "--quiet"]) == 5
    assert "limits.seconds admits" in capsys.readouterr().err


SCENARIO = {
    "schema": 1,
    "scenario": "s",
    "task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [4, 6]},
    "topology": {"kind": "ring"},
    "engine": "event",
    "protocols": {"cd": {"kind": "coordinate_descent"}, "local": {"kind": "local"}},
    "record": {"every": 1.0, "metrics": ["accuracy"]},
    "stop": {"time": 1.0},
    "seeds": 2,
}


def labelled(label):
    return {**SCENARIO, "protocols": {**SCENARIO["protocols"], "cd": {"kind": "coordinate_descent", "label": label}}}


def test_no_cell_of_a_table_is_a_formula(tmp_path, capsys):
    labels = ['=HYPERLINK("http://x")', "+1+cmd", "-2+3", "@SUM(A1)"]
    named = {f"p{k}": {"kind": "coordinate_descent", "label": label} for k, label in enumerate(labels)}
    run({**SCENARIO, "protocols": {**named, "local": {"kind": "local"}}}, out=tmp_path / "out")
    assert main(["compare", str(tmp_path / "out"), "--baseline", "local"]) == 0
    capsys.readouterr()
    texts = [path.read_text() for path in (tmp_path / "out").rglob("*.csv")]
    assert texts
    for text in texts:
        cells = pd.read_csv(pd.io.common.StringIO(text), dtype=str).fillna("").to_numpy().ravel()
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@")) or cell in labels]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Results of the scenario."""
    return run(SCENARIO, out=tmp_path_factory.mktemp("made") / "out").folder


@pytest.mark.parametrize("character", ["\x1b]0;x\x07", "\x1b[31m", "\x08", "\x9b31m", "\u202e", "\x7f"])
@pytest.mark.parametrize("escaped", [True, False])
def test_what_a_strangers_index_says_steers_no_terminal(made, character, escaped, tmp_path, capsys):
    path = shutil.copytree(made, tmp_path / "out") / "index.json"
    index = json.loads(path.read_text())
    index["labels"]["cd"] = f"a{character}b"
    path.write_text(json.dumps(index, ensure_ascii=escaped))
    assert read_json(path)["labels"]["cd"].isprintable()
    main(["compare", str(tmp_path / "out")])
    out = capsys.readouterr()
    assert not set("\x1b\x07\x08\x9b\u202e\x7f") & set(out.out + out.err)


def test_a_character_that_json_writes_in_two_escapes_is_whole(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(labelled("party \N{PARTY POPPER}")))
    assert "\\ud83c\\udf89" in path.read_text()
    assert load(path).scenario.label("cd") == "party \N{PARTY POPPER}"
    path.write_text(path.read_text().replace("\\udf89", ""))
    with pytest.raises(InputError, match=r"the character U\+D83C is not allowed"):
        load(path)


OF_PYTHON = {
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
ROUND = dict(OF_PYTHON)
ROUND["figures"] = [ROUND]


@pytest.mark.parametrize("letter", ["\ud800", "\0", "\x1b", "\u202e", "\u2066"])
def test_characters_that_no_file_may_have_are_refused(letter):
    sentence = f"the character U\\+{ord(letter):04X} is not allowed in a scenario"
    with pytest.raises(InputError, match=f"scenario: title: {sentence}"):
        load({**OF_PYTHON, "title": f"a{letter}b"})
    with pytest.raises(InputError, match=sentence):
        read_text(f"title: a{letter}b\n", "x.yaml")
    with pytest.raises(InputError, match=sentence):
        load({**OF_PYTHON, "protocols": {f"c{letter}": {"kind": "local"}}})


@pytest.mark.parametrize("wrong", [{**OF_PYTHON, "title": DEEP}, ROUND], ids=["deep", "in itself"])
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
        load({**OF_PYTHON, "sweep": {path: [1, 2]}})


HEAD = """\
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
    code, said = answer(tmp_path, capsys, HEAD + text)
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
    code, said = answer(tmp_path, capsys, HEAD + LOCAL + line + "\n")
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
