"""``hushnet new scenario`` writes files that can be run, whatever kinds somebody asks for."""

from __future__ import annotations

import re

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.cli import main
from hushnet.simulator.language.described import SECTIONS, kinds_in, protocols
from hushnet.simulator.language.loading import load
from hushnet.simulator.shell.new_scenario import DEFAULTS, ON_ANY_GRAPH, scenario_text, write_scenario

UNFIT = {
    ("task", "epsilon"): "not smooth",
    ("task", "epsilon_like"): "not smooth",
    ("task", "csv"): "either agent",
    ("clock", "recorded"): "exactly one of order and path",
    ("model", "torch"): "run only with --trust-code",
}
"""Kinds that need more than their fields, and what is said."""


def test_it_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "scenario", "mine"]) == 0
    assert main(["run", "mine.yaml", "--quiet", "--set", "stop.time=2", "--seeds", "1"]) == 0
    assert (tmp_path / "results" / "mine" / "figures").is_dir()


@pytest.mark.parametrize(("section", "kind"), UNFIT, ids=" ".join)
def test_a_kind_that_needs_more_than_its_fields_is_not_written(section, kind, tmp_path):
    with pytest.raises(InputError, match=f"nothing was written: .*{UNFIT[section, kind]}"):
        write_scenario("mine", tmp_path, kinds={section: kind})
    assert not list(tmp_path.iterdir())


def test_every_protocol_can_be_started_with(tmp_path):
    refused = []
    for kind in protocols():
        try:
            written = write_scenario(kind, tmp_path, among=[kind])
        except InputError as error:
            refused.append((kind, "features that are split between parties" in str(error)))
        else:
            assert list(load(written).scenario.protocols) == [kind]
    assert refused == [("feature_sgd", True), ("feature_sharing", True), ("stale_feature_sharing", True)]


def test_comments_show_the_defaults(tmp_path):
    text = write_scenario("mine", tmp_path).read_text()
    assert "\n  # label_noise: 0.05" in text
    with_comments = load(tmp_path / "mine.yaml").scenario
    (tmp_path / "other.yaml").write_text(text.replace("  # label_noise: 0.05", "  label_noise: 0.05"))
    assert load(tmp_path / "other.yaml").scenario == with_comments


@pytest.mark.parametrize("section", SECTIONS)
def test_a_comment_that_is_taken_away_changes_nothing(section, tmp_path):
    """A newcomer takes away a # before changing the value behind it."""
    for kind in kinds_in(section):
        if (section, kind) not in UNFIT:
            place = takes_comments_away(tmp_path, {section: kind}, ())
            for name in SECTIONS[section]:
                place = getattr(place, name)
            assert place.kind == kind


def takes_comments_away(folder, kinds, among):
    text = scenario_text("mine", kinds=kinds, among=among)
    if "topology" not in kinds and refuses(folder, text):
        text = scenario_text("mine", kinds={**kinds, "topology": "ring"}, among=among)
    if not among and refuses(folder, text):
        text = scenario_text("mine", kinds=kinds, among=ON_ANY_GRAPH)
    expected = loaded(folder, text)
    open_text, taken = re.subn(r"^( +)# (\w+: )", r"\1\2", text, flags=re.MULTILINE)
    assert taken > 0
    assert loaded(folder, open_text) == expected
    assert "``" not in text
    return expected


def loaded(folder, text):
    (folder / "open.yaml").write_text(text)
    return load(folder / "open.yaml").scenario


def refuses(folder, text):
    try:
        loaded(folder, text)
    except InputError:
        return True
    return False


def test_what_is_not_admissible_is_said_and_nothing_is_lost(tmp_path, capsys):
    assert main(["new", "scenario", "../mine", "--dir", str(tmp_path)]) == 2
    assert "cannot name a scenario" in capsys.readouterr().err
    assert main(["new", "scenario", "mine", "--dir", str(tmp_path), "--topology", "rign"]) == 2
    assert "there is no topology 'rign'; did you mean 'ring'" in capsys.readouterr().err
    assert main(["new", "scenario", "mine", "--dir", str(tmp_path), "--protocol", "local,cdd"]) == 2
    assert "there is no protocol 'cdd'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine.yaml").write_text("mine")
    assert main(["new", "scenario", "mine", "--dir", str(tmp_path)]) == 2
    assert (tmp_path / "mine.yaml").read_text() == "mine"
    # By default nobody attacks, the graph stays, steps take no time, and a task deals its rows as it does.
    assert {*DEFAULTS, "attack", "changes", "compute", "split"} == set(SECTIONS)


TABLE = (
    "Patient;Klinik;Alter;Gewicht;Befund;Aufnahme;Folge\n"
    "p-a1;Nord;61;70,5;rot;01.02.2026;ja\n"
    "p-b2;Sued;54;;blau;03.02.2026;nein\n"
    "p-c3;West;43;81,25;rot;04.02.2026;nein\n"
    "p-d4;Nord;38;77,0;blau;05.02.2026;nein\n"
    "p-e5;Sued;49;66,5;rot;06.02.2026;ja\n"
    "p-f6;West;72;59,0;blau;07.02.2026;ja\n"
)


def test_a_table_of_ones_own_becomes_a_scenario_that_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = TABLE.splitlines()
    more = [row.replace("p-", f"q{k}-") for k in range(8) for row in rows[1:]]
    (tmp_path / "kliniken.csv").write_text("\n".join([*rows, *more]) + "\n")
    words = ["new", "scenario", "mine", "--data", "kliniken.csv", "--agent", "Klinik", "--label", "Folge"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "categories: Befund" in said
    assert "dates: Aufnahme" in said
    assert "Patient" in said
    task = load(tmp_path / "mine.yaml").scenario.task
    assert (task.delimiter, task.decimal, task.missing, task.drop) == (";", ",", "drop", ["Patient"])
    assert main(["run", "mine.yaml", "--quiet", "--set", "stop.time=2", "--seeds", "1"]) == 0


def test_columns_that_are_left_out_have_a_reason_and_softmax_takes_more_classes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = (f"{k:03d},{40 - k},{k} %,{k * k / 7:.3f},{'abc'[k % 3]}\n" for k in range(40))
    (tmp_path / "t.csv").write_text("patient,visit,share,x,y\n" + "".join(rows))
    assert main(["new", "scenario", "mine", "--data", "t.csv", "--label", "y", "--model", "softmax"]) == 0
    said = capsys.readouterr().out
    assert "too many that differ): patient, visit\n" in said
    assert "left out: share, for '0 %'; it is a percentage; write a number without the sign" in said
    assert load(tmp_path / "mine.yaml").scenario.task.drop == ["patient", "visit", "share"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--data", "t.csv"], "--data FILE --label COLUMN"),
        (["--agent", "a"], "--data FILE --label COLUMN"),
        (["--data", "t.csv", "--label", "y", "--task", "adult"], "without --task"),
        (["--data", "t.csv", "--label", "z"], "there is no column 'z'"),
        (["--data", "t.csv", "--label", "name"], "a label has two classes, or numbers; --model softmax takes more"),
        (
            ["--data", "sep.csv", "--label", "y"],
            "sep.csv:1: column 2 has no name; every column needs one; line 1 is no header",
        ),
        (
            ["--data", "uci.csv", "--label", "y"],
            "line 1 has data; put names of the columns above it, as by: sed -i '1i c",
        ),
        (["--data", "r.csv", "--label", "y"], "pandas and R write names of rows so"),
    ],
)
def test_a_table_that_cannot_be_a_task_is_refused(tmp_path, monkeypatch, capsys, words, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("name,x,y\na,1,0\nb,2,1\nc,3,1\n")
    (tmp_path / "sep.csv").write_text("sep=;\nx;y\n1;0\n")
    (tmp_path / "uci.csv").write_text("a,1.5,0\nb,?,1\n")
    (tmp_path / "r.csv").write_text('"","x","y"\n"1",1,0\n')
    assert main(["new", "scenario", "mine", *words]) == 2
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "mine.yaml").exists()


@pytest.mark.parametrize(
    ("assignment", "path", "value"),
    [
        ("seeds=7", ("seeds",), 7),
        ("task.agents=12", ("task", "agents"), 12),  # a comment
        ("network.loss=0.2", ("network", "loss", "probability"), 0.2),
        ("stop.time=50", ("stop", "time"), 50.0),  # among others in braces
        ("network.latency={kind: constant, value: 0.5}", ("network", "latency", "value"), 0.5),  # a block
        ("record.messages={agents: 2}", ("record", "messages", "agents"), 2),  # a new line of a block
        ("time_unit=10 s", ("time_unit",), "10 s"),
        ("compute.kind=by_size", None, "compute.each: is missing"),
        ("limits.memory=2 GB", ("limits", "memory"), "2 GB"),
        ("protocols.third.kind=local", None, "no line for protocols.third.kind; write it there by hand"),
        ("task.agents=-3", None, "task.agents = -3: must be at least 1"),
        ("seeds", None, "--set seeds: must be PATH=VALUE, such as network.loss=0.2"),
    ],
)
def test_fields_are_set_in_a_new_file(tmp_path, monkeypatch, capsys, assignment, path, value):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "scenario", "mine", "--set", assignment]) == (2 if path is None else 0)
    if path is None:
        assert value in capsys.readouterr().err
        return
    found = load(tmp_path / "mine.yaml").scenario.resolved()
    for key in path:
        found = found[key]
    assert found == value
