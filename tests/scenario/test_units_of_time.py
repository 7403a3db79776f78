"""Durations with a unit, and files in their own words and units, say what numbers and files in ours say."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hushnet.agents.durations import Timed, seconds_in
from hushnet.agents.errors import InputError
from hushnet.simulator.api import run
from hushnet.simulator.cli import main
from hushnet.simulator.language.admissible import at as type_at
from hushnet.simulator.language.admissible import members
from hushnet.simulator.language.loading import load, shipped
from hushnet.simulator.language.scenario import Scenario
from hushnet.simulator.language.schema import scenario_schema
from hushnet.simulator.language.yaml_source import read_file
from jsonschema import Draft202012Validator

from .test_schema_and_check import at, places, plain

SMALL = {
    "schema": 1,
    "scenario": "small",
    "time_unit": "50 ms",
    "task": {"kind": "linear_classification", "agents": 3, "dimension": 2},
    "topology": {"kind": "complete"},
    "protocols": {"p": {"kind": "epidemic_learning", "step_size": 0.1}},
    "stop": {"time": "200 ms"},
    "engine": "event",
}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("80 ms", Fraction(2, 25)), ("1.5min", 90), ("2 d", 172800), ("1 ns", Fraction(1, 10**9))]
    + [(text, None) for text in ("80", "ms", "80 m", "-1 s", "1e3 s", " 1 s", "1 s ", 80, None)],
)
def test_seconds_of_a_duration_are_exact(text, seconds):
    assert seconds_in(text) == seconds


def test_shipped_scenarios_are_the_same_with_durations():
    found = 0
    for name, path in [*shipped().items()][::3]:
        data, spelled = ({**plain(read_file(path).data), "time_unit": "250 ms"} for _ in range(2))
        for where in places(data):
            number = at(data, where)
            timed = where[0] not in ("sweep", "tune", "quick", "protocols", "figures") and type(number) in (int, float)
            if timed and Timed in members(type_at(Scenario, data, where)):
                at(spelled, where[:-1])[where[-1]] = f"{Decimal(str(number)) * 250:f} ms"
                found += 1
        assert load(data).scenario == load(spelled).scenario, name
    assert found > 50


@pytest.mark.parametrize(
    ("swept", "values"),
    [
        ({"network.latency": ["10 ms", "80 ms"]}, [0.2, 1.6]),
        ({"network.latency": {"log": ["10 ms", "1 s", 3]}}, [0.2, 2.0, 20.0]),
        ({"record.every": {"from": "50 ms", "to": "150 ms", "step": "50 ms"}}, [1.0, 2.0, 3.0]),
        ({"both": {"zip": {"network.latency": ["50 ms"], "stop.time": ["1 s"]}}}, [1.0]),
    ],
)
def test_places_of_a_sweep_are_numbers_of_time_units(swept, values):
    loaded = load({**SMALL, "sweep": swept, "figures": [{"y": "objective", "at": {next(iter(swept)): values[0]}}]})
    assert [point.values[next(iter(swept))] for point in loaded.points] == values
    if "network.latency" in swept:
        assert [point.scenario.network.latency.average for point in loaded.points] == values


def test_fields_of_protocols_take_durations_and_tuning_tries_them():
    protocol = {"kind": "decentralised_sgd", "step_size": 0.1, "schedule": {"kind": "rounds", "resend_after": "1 s"}}
    tune = {"over": {"p.schedule.resend_after": ["500 ms", "2 s"]}, "seeds": [7]}
    loaded = load({**SMALL, "protocols": {"p": protocol}, "tune": tune})
    assert loaded.scenario.protocols["p"].schedule.resend_after == 20.0
    assert [trial.scenario.protocols["p"].schedule.resend_after for trial in loaded.trials] == [10.0, 40.0]


@pytest.mark.parametrize(
    ("set_", "says"),
    [
        ({"time_unit": None}, "stop.time = '200 ms': needs the scenario's time_unit"),
        ({"time_unit": "0 ms"}, "time_unit = '0 ms': must be longer than 0"),
        ({"network": {"latency": "0.00000001 ns"}}, "network.latency = '0.00000001 ns': must be 0 or at least 1e-09"),
        ({"network": {"latency": "soon"}}, "must be a number, a duration such as 80 ms or a mapping"),
        ({"clock": {"kind": "periodic", "period": ["1 s", "x"]}}, "clock.period[1] = 'x': must be a number or a dur"),
        ({"network": {"loss": "80 ms"}}, "network.loss = '80 ms': must be a number or a mapping"),
    ],
)
def test_what_is_no_duration_is_one_sentence(set_, says):
    with pytest.raises(InputError) as error:
        load({**SMALL, **set_})
    assert says in str(error.value), str(error.value)


WORDS = {
    "matrix": ("network.latency", "sender,receiver,delay", ["0,1,1", "1,0,2", "0,2,.4", "2,0,1", "1,2,3", "2,1,1"]),
    "empirical": ("network.latency", "delay", ["1", "2.5"]),
    "varying": ("network.latency", "sender,receiver,time,delay", [f"{a},{b},0,1" for a in "012" for b in "012"]),
    "times": ("clock", "agent,time", ["0,1", "1,1.5", "2,2", "0,3"]),
    "trace": ("availability", "agent,up_from,up_to", ["0,0,3", "1,.5,2.5", "2,0,4"]),
    "compute": ("compute", "agent,duration", ["0,.1", "1,.2", "2,.3"]),
    "opened": ("topology.changes", "source,target,from,until", ["0,1,0,1", "1,2,.5,3"]),
    "edge_list": ("topology", "source,target,weight", ["0,1,1", "1,2,2.5"]),
}


def of_file(kind, folder, first, rows, **fields):
    """The trace of a small run with a file in one of the places where a scenario names one."""
    where = WORDS[kind][0]
    (folder / "t.csv").write_text("\n".join([*([first] if first else []), *rows]) + "\n")
    chosen = {"compute": "trace", "opened": "times"}.get(kind, kind)
    part = {"kind": chosen, "path": str(folder / "t.csv"), **fields}
    scenario = dict(SMALL)
    section, _, rest = where.partition(".")
    scenario[section] = {**scenario.get(section, {}), rest: part} if rest else part
    return run(scenario, out=folder / "out").trace.drop(columns="run")


@pytest.mark.parametrize(
    "fields", [{}, {"columns": {"source": 1, "target": "target"}}, {"header": False}], ids=["named", "said", "bare"]
)
def test_edges_without_weights_weigh_one(fields, tmp_path):
    pairs, headed = ["0,1", "1,2"], fields.get("header", True)
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    ours = of_file("edge_list", tmp_path / "ours", "source,target,weight", [f"{pair},1" for pair in pairs])
    theirs = of_file("edge_list", tmp_path / "theirs", "source,target" if headed else None, pairs, **fields)
    assert theirs.equals(ours)


@pytest.mark.parametrize("kind", WORDS)
def test_a_file_in_its_own_words_and_unit_is_the_same(kind, tmp_path):
    _, header, rows = WORDS[kind]
    names = header.split(",")
    ids = [name for name in names if name in ("agent", "sender", "receiver", "source", "target")]
    unit = 1 if kind == "edge_list" else 50
    theirs = []
    for row in rows:
        cells = row.split(",")
        numbers = [f"{float(cell) * unit:g}" for cell in cells[len(ids) :]]
        theirs.append(",".join(["note", *reversed(numbers), *cells[: len(ids)]]))
    shuffled = [*reversed(names[len(ids) :]), *ids]
    folders = [tmp_path / name for name in ("ours", "named", "numbered", "bare")]
    for folder in folders:
        folder.mkdir()
    own = {} if kind == "edge_list" else {"unit": "ms"}
    named = {name: f"their {name}" for name in names}
    numbered = {name: shuffled.index(name) + 2 for name in names}
    traces = [
        of_file(kind, folders[0], header, rows),
        of_file(kind, folders[1], ",".join(["x", *(named[n] for n in shuffled)]), theirs, columns=named, **own),
        of_file(kind, folders[2], None, theirs, columns=numbered, header=False, **own),
        of_file(kind, folders[3], None, rows, header=False),
    ]
    for other in traces[1:]:
        assert other.equals(traces[0])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "t.csv:1: the header ['a', 'b', 'rtt'] must be sender, receiver, delay, or columns has to say which is"),
        ({"columns": {"dely": "rtt"}}, "network.latency.columns.dely = 'rtt': unknown column; admissible: sender, rec"),
        ({"columns": {"sender": "a", "receiver": "b", "delay": "rt"}}, "t.csv:1: has no column 'rt' among"),
        ({"columns": {"sender": "a", "receiver": "b", "delay": 4}}, "t.csv:1: has no column 4 among"),
        (
            {"columns": {"sender": "a"}},
            "t.csv:1: has no column 'receiver' among ['a', 'b', 'rtt']; set columns.receiver",
        ),
        (
            {"columns": {"sender": "a", "receiver": "b", "delay": "rtt"}},
            "t.csv:3: delay '3 ms' must be a number without its unit, which unit says for the whole file",
        ),
        ({"header": False}, "t.csv:1: 'a' is not the id of an agent"),
        ({"columns": {"delay": 0}}, "network.latency.columns.delay = 0: must be at least 1"),
        ({"unit": "parsec"}, "network.latency.unit = 'parsec': must be a number"),
        ({"unit": "ms", "time_unit": None}, "network.latency.unit = 'ms': needs the scenario's time_unit"),
    ],
)
def test_what_a_file_does_not_have_is_one_sentence(fields, says, tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b,rtt\n0,1,2\n1,0,3 ms\n")
    latency = {"kind": "matrix", "path": "t.csv", **fields}
    unit = latency.pop("time_unit", "1 s")
    text = f"""schema: 1
scenario: small
{"" if unit is None else "time_unit: 1 s"}
task: {{kind: mean_estimation, agents: 3}}
topology: {{kind: complete}}
protocols: {{p: {{kind: model_propagation, alpha: 0.9}}}}
stop: {{time: 1}}
network: {{latency: {latency}}}
"""
    (tmp_path / "s.yaml").write_text(text)
    assert main(["check", str(tmp_path / "s.yaml")]) == 2
    said = capsys.readouterr().err
    assert says in said, said
    assert said.count("\n") == 1, said


def test_a_table_without_a_header_is_the_same(tmp_path):
    rows = ["3,a,x,1", "1,b,y,-1", "2,a,y,1", "5,b,x,-1", "2.5,a,x,-1"] * 4
    (tmp_path / "a.csv").write_text("\n".join(["age,hospital,sex,outcome", *rows]))
    (tmp_path / "b.csv").write_text("\n".join(rows))
    traces = []
    for name, (label, agent, sex) in {"a": ("outcome", "hospital", "sex"), "b": ("4", "2", "3")}.items():
        task = {"kind": "csv", "path": str(tmp_path / f"{name}.csv"), "label": label, "agent": agent}
        task |= {"categorical": [sex], "header": name == "a"}
        out = tmp_path / f"out-{name}"
        traces.append(run({**SMALL, "task": task, "protocols": {"p": {"kind": "local"}}}, out=out).trace)
    assert traces[0].drop(columns="run").equals(traces[1].drop(columns="run"))


def test_durations_name_points_and_instants_of_results(tmp_path, capsys):
    twice = {"p": SMALL["protocols"]["p"], "q": {"like": "p", "step_size": 0.2}}
    scenario = {
        **SMALL,
        "protocols": twice,
        "record": {"every": "50 ms"},
        "sweep": {"network.latency": ["10 ms", "80 ms"]},
    }
    run(scenario, out=tmp_path / "out")
    out = str(tmp_path / "out")
    assert main(["compare", out, "--at", "latency=80 ms"]) == 0
    assert main(["compare", out]) == 0
    assert "by latency (time units of 50 ms)" in capsys.readouterr().out
    for asked in (("80 ms", "50 ms", "0.15 s"), ("1.6", "1", "3")):
        page, (delay, begin, end) = str(tmp_path / f"{asked[0]}.html"), asked
        run_ = f"p,network.latency={delay}"
        assert main(["replay", out, "--run", run_, "--from", begin, "--to", end, "--out", page]) == 0
    assert (tmp_path / "80 ms.html").read_text() == (tmp_path / "1.6.html").read_text()
    for wrong, says in (
        (["compare", out, "--at", "latency=70 ms"], "nothing was run there"),
        (["replay", out, "--from", "soon"], "--from soon: must be a number of time units"),
    ):
        assert main(wrong) == 2
        assert says in capsys.readouterr().err


def test_the_schema_admits_durations_where_the_check_does():
    validator = Draft202012Validator(scenario_schema())
    for value, admitted in ((0.5, True), ("80 ms", True), ({"kind": "constant", "value": "1 s"}, True), ("x", False)):
        assert validator.is_valid({**SMALL, "compute": value}) == admitted
    timeline = {"kind": "timeline", "between": [0, "100 ms"]}
    assert validator.is_valid({**SMALL, "figures": [timeline]})
    assert not validator.is_valid({**SMALL, "figures": [{"between": [0, "100 ms"]}]})
