"""Where no protocol minimises an objective, none is measured: that is said before the first run."""

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.summary import summarise
from hushnet.simulator.api import Result, run

SCENARIO = {
    "schema": 1,
    "scenario": "absent",
    "task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [5, 5]},
    "topology": {"kind": "complete"},
    "engine": "event",
    "protocols": {"local": {"kind": "local"}, "mean": {"kind": "consensus"}},
    "stop": {"time": 2.0},
    "seeds": 1,
}
DESCENT = {"kind": "coordinate_descent"}


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({"metrics": ["objective"]}, "record.metrics: no protocol minimises an objective"),
        (
            {"metrics": ["objective", "accuracy"], "objective_of": "local"},
            "record.objective_of = 'local': minimises no",
        ),
    ],
)
def test_an_experiment_that_would_record_nothing_of_an_objective_is_refused(record, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        run({**SCENARIO, "record": {"every": 1.0, **record}}, out=tmp_path / "out")


def test_results_without_any_row_are_shown(tmp_path):
    """As versions before this one wrote them: here of one protocol of two, whose runs are taken away."""
    record = {"every": 1.0, "metrics": ["objective"]}
    both = {**SCENARIO, "protocols": {"local": {"kind": "local"}, "cd": DESCENT}, "record": record}
    result = run(both, out=tmp_path / "out")
    apart = result.collection
    kept = [place for place, manifest in enumerate(apart.manifests) if manifest["protocol"] == "local"]
    apart.trace = apart.trace[apart.trace["protocol"] == "local"].reset_index(drop=True)
    apart.runs, apart.manifests = ([values[place] for place in kept] for values in (apart.runs, apart.manifests))
    assert len(apart.trace) == 0
    assert summarise(apart)["n"].tolist() == [1]
    assert "<table" in Result(apart)._repr_html_()
