"""What a scenario means once it is loaded: inheritance, overrides, sweeps, seeds, defaults, own code."""

import json
import string

import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols import catalog
from hushnet.protocols.base import Layout, Protocol, ProtocolParameters
from hushnet.simulator import run
from hushnet.simulator.language.loading import find, load, locate, opening_comment, shipped
from hushnet.simulator.language.scenario import Scenario
from hushnet.simulator.language.schema import scenario_schema
from hushnet.simulator.metrics import METRICS, more_is_better
from hypothesis import given, settings
from hypothesis import strategies as st


class ToyParameters(ProtocolParameters):
    """A toy."""

    step_size: float = 0.1
    noise: dict[str, float] | None = None


class Toy(Protocol):
    """Does nothing."""

    Parameters = ToyParameters

    def layout(self):
        return Layout(agent={"model": 1})

    def start(self, me):
        return


def written(**fields):
    return {
        "schema": 1,
        "scenario": "tiny",
        "task": {"kind": "linear_classification", "agents": 4, "dimension": 3},
        "topology": {"kind": "ring"},
        "protocols": {"local": {"kind": "local"}},
        "stop": {"time": 10},
        **fields,
    }


def protocols(**entries):
    loaded = load(written(protocols=entries), extra={"toy": Toy})
    return loaded.scenario.protocols


def test_what_is_left_out_has_its_default():
    scenario = load(written()).scenario
    assert (scenario.clock.kind, scenario.availability.kind, scenario.network.loss.probability) == (
        "poisson",
        "always",
        0,
    )
    assert (scenario.record.every, scenario.record.metrics, scenario.seeds, scenario.engine) == (
        1,
        None,
        1,
        "auto",
    )


def test_a_child_takes_over_what_it_does_not_write():
    entries = protocols(
        a={"kind": "toy", "step_size": 0.5, "label": "A"}, b={"like": "a"}, c={"like": "b", "label": "C"}
    )
    assert [(entry.step_size, entry.label) for entry in entries.values()] == [(0.5, "A"), (0.5, None), (0.5, "C")]


def test_mappings_are_merged_and_null_removes():
    entries = protocols(
        a={"kind": "toy", "step_size": 0.5, "noise": {"x": 1.0, "y": 2.0}},
        b={"like": "a", "noise": {"y": 3.0, "z": 4.0}},
        c={"like": "b", "noise": {"x": None}, "step_size": None},
        d={"like": "a", "noise": None},
    )
    assert entries["b"].noise == {"x": 1, "y": 3, "z": 4}
    assert entries["c"].noise == {"y": 3, "z": 4}
    assert entries["c"].step_size == 0.1
    assert entries["d"].noise is None


def test_overrides_are_applied_in_order_and_make_missing_mappings():
    loaded = load(written(), overrides=["network.latency.kind=constant", "network.latency.value=1", "network.loss=0.1"])
    assert loaded.scenario.network.latency.value == 1
    assert load(written(), overrides=["seeds=3"], seeds=7).scenario.seeds == 7


@pytest.mark.parametrize(
    ("seeds", "pairs"),
    [
        (2, [(0, 0, 0), (1, 1, 1)]),
        ([5, 3], [(5, 5, 5), (3, 3, 3)]),
        ({"data": 2, "run": 2}, [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]),
    ],
)
def test_seeds_are_pairs_of_data_and_run(seeds, pairs):
    assert load(written(seeds=seeds)).scenario.seed_pairs() == pairs


def test_a_later_error_is_located_by_its_field(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(json.dumps(written(), indent=1), encoding="utf-8")
    loaded = load(path, overrides=["stop.time=3"])
    agents = next(i for i, line in enumerate(path.read_text().splitlines(), start=1) if "agents" in line)
    assert (
        locate(InputError("too many", field=("task", "agents")), loaded)
        == f"{path}:{agents}: task.agents = 4: too many"
    )
    assert locate(InputError("too long", field=("stop", "time")), loaded) == "--set stop.time=3: too long"
    assert locate(InputError("too few", field=("topology", "reach")), loaded).endswith(": topology.reach: too few")
    assert locate(InputError("no field"), loaded) == "no field"
    assert locate(InputError("figures: none", field=("figures",)), loaded).count("figures: ") == 1


def test_statistics_follow_the_metric():
    figures = [
        {"y": "objective"},
        {"y": "accuracy"},
        {"y": "epsilon_verified"},
        {"y": "accuracy", "statistic": "worst_decile"},
    ]
    data = written(record={"every": 1, "metrics": ["objective", "accuracy", "epsilon"]}, figures=figures)
    assert [figure.statistic for figure in load(data).scenario.figures] == ["value", "mean", "worst", "worst_decile"]


def test_a_metric_is_recorded_by_the_name_that_the_trace_gives_it():
    figures = [{"y": "epsilon_verified"}]
    found = load(written(record={"every": 1, "metrics": ["epsilon_verified"]}, figures=figures)).scenario
    assert found.traced() == ["epsilon_verified"]
    both = load(written(record={"every": 1, "metrics": ["epsilon"]})).scenario
    assert both.traced() == ["epsilon_claimed", "epsilon_verified"]
    with pytest.raises(InputError, match=r"record\.metrics .*: names a metric twice"):
        load(written(record={"every": 1, "metrics": ["epsilon", "epsilon_verified"]}))


PLUGIN = """
from hushnet.protocols.base import Layout, Protocol

class Mine(Protocol):
    def layout(self):
        return Layout(agent={"model": 1})
    def start(self, me):
        pass

class Other:
    pass

class Half(Protocol):
    pass
"""


def own(tmp_path, spec="./mine.py:Mine", text=PLUGIN, **fields):
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    path = tmp_path / "a.yaml"
    path.write_text(json.dumps(written(protocols={"mine": {"kind": spec}}, **fields)), encoding="utf-8")
    return path


def test_an_own_protocol_is_found_beside_the_scenario(tmp_path):
    loaded = load(own(tmp_path), trust_code=True)
    assert loaded.code.protocol("./mine.py:Mine").__name__ == "Mine"
    assert loaded.code.protocol("./mine.py:Mine") is loaded.code.protocol("./mine.py:Mine")
    assert loaded.scenario.protocols["mine"].kind == "./mine.py:Mine"


def test_an_own_file_is_not_run_without_trust(tmp_path):
    marker = tmp_path / "ran"
    with pytest.raises(InputError, match=r"a\.yaml:1: protocols\.mine\.kind = .* only with --trust-code"):
        load(own(tmp_path, text=f"open({str(marker)!r}, 'w')\n"))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("spec", "text", "says"),
    [
        ("./mine.py:Mine", "x = 1\ny = 1 / 0\n", r"mine\.py:2 raises ZeroDivisionError: division by zero"),
        ("./mine.py:Mine", "x = (\n", r"mine\.py:1 raises SyntaxError"),
        ("./mine.py:Mine", "import sys\nsys.exit(3)\n", r"mine\.py:2 raises SystemExit: 3"),
        ("./mine.py:Mien", PLUGIN, r"has no Mien; did you mean 'Mine'\?"),
        ("./mine.py:Other", PLUGIN, "is not a subclass of hushnet.protocols.base.Protocol"),
        ("./mine.py:Half", PLUGIN, "is abstract; it has yet to define layout, start"),
        ("./none.py:Mine", PLUGIN, r"none\.py: cannot be read as Python code \(No such file"),
    ],
)
def test_what_is_wrong_with_an_own_file_is_one_sentence(tmp_path, spec, text, says):
    with pytest.raises(InputError, match=says) as caught:
        load(own(tmp_path, spec, text), trust_code=True)
    assert "\n" not in str(caught.value)


METRIC = """
from hushnet.agents.quantity import Quantity
from hushnet.simulator.metrics import Metric

def largest(reading):
    yield "worst", abs(reading.models).max()

size = Metric(name="size", better="less", compute=largest, label="largest weight", statistics=("worst",),
              default="worst", quantity=lambda reading: Quantity("largest weight", "worst agent"))
"""


def test_an_own_metric_with_all_that_is_known_of_it_is_named_once(tmp_path):
    name = "./mine.py:size"
    (tmp_path / "mine.py").write_text(METRIC)
    asked = {"record": {"every": 1, "metrics": ["accuracy", name]}, "target": {"metric": name, "level": 1}}
    path = tmp_path / "a.yaml"
    path.write_text(json.dumps(written(figures=[{"y": name}], **asked)))
    try:
        loaded = load(path, trust_code=True)
        assert loaded.scenario.traced() == ["accuracy", name]
        assert loaded.scenario.figures[0].statistic == "worst"
        assert (METRICS[name].words, more_is_better(name)) == ("largest weight", False)
        result = run(path, trust_code=True, out=tmp_path / "out")
        found = result.trace[result.trace["metric"] == name]
        assert set(found["statistic"]) == {"worst"}
        assert result.manifests[0]["measures"][name]["function"] == "largest weight"
    finally:
        METRICS.remove(name)


def test_the_schema_covers_every_protocol_with_and_without_like():
    schema = scenario_schema()
    entries = [entry["$ref"].rpartition("/")[2] for entry in schema["$defs"]["registered"]["anyOf"]]
    kinds = [schema["$defs"][name]["properties"]["kind"]["const"] for name in entries]
    assert kinds == [*catalog.names(), *catalog.names()]
    assert [schema["$defs"][name]["required"] for name in entries[len(catalog.names()) :]] == [["like"]] * len(
        catalog.names()
    )
    references = {part.split('"')[0] for part in json.dumps(schema).split("#/$defs/")[1:]}
    assert references <= set(schema["$defs"])
    assert set(schema["required"]) == {"schema", "scenario", "task", "topology", "protocols", "stop"}


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_scenario_is_valid_and_says_what_it_shows(name):
    assert load(name).scenario.scenario == name
    assert opening_comment(find(name))


valid = st.fixed_dictionaries(
    {},
    optional={
        "title": st.text(string.ascii_letters, max_size=10) | st.none(),
        "clock": st.fixed_dictionaries({"kind": st.just("poisson"), "rate": st.floats(1e-3, 1e3) | st.integers(1, 9)}),
        "network": st.fixed_dictionaries(
            {},
            optional={
                "loss": st.floats(0, 0.9),
                "latency": st.just(0.0) | st.floats(1e-9, 1e6),
                "start": st.sampled_from(["own"]),
            },
        ),
        "stop": st.dictionaries(
            st.sampled_from(["activations", "vectors", "updates"]), st.integers(1, 10**15), min_size=1
        ),
        "seeds": st.integers(1, 5) | st.lists(st.integers(0, 2**64 - 1), unique=True, min_size=1, max_size=4),
        "sweep": st.fixed_dictionaries(
            {"task.agents": st.lists(st.integers(1, 99), unique=True, min_size=1, max_size=3)}
        ),
    },
)


@settings(max_examples=40, deadline=None)
@given(valid)
def test_any_valid_scenario_survives_being_resolved(fields):
    resolved = load(written(**fields)).scenario.resolved()
    again = load(resolved).scenario
    assert isinstance(again, Scenario)
    assert again.resolved() == resolved
