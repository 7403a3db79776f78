"""What a name in a figure or a target stands for, and where a record is on an axis."""

from __future__ import annotations

import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.aggregate import curves, resolve
from hushnet.simulator.analysis.results import Collection

RECORDED = [
    ("objective", "value"),
    ("objective", "gap"),
    ("accuracy", "mean"),
    ("accuracy", "worst_decile"),
    ("epsilon_claimed", "worst"),
    ("epsilon_verified", "worst"),
    ("epsilon_verified", "q90"),
]


def collection_of(recorded, *, agents=4):
    """A run of two records, after 0 and 8 activations."""
    rows = [
        {"run": "r", "protocol": "p", "time": time, "activations": 8 * time, "metric": metric, "statistic": statistic}
        for time in (0, 1)
        for metric, statistic in recorded
    ]
    trace = pd.DataFrame(rows).assign(messages=0, vectors=0, bytes=0, value=1.0)
    manifest = {"protocol": "p", "seed": 0, "grid": {}, "status": "complete"}
    return Collection(trace, pd.DataFrame({"run": ["r"] * agents}), [manifest], ["r"])


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (("objective", None), ("objective", "gap")),
        (("objective", "value"), ("objective", "value")),
        (("gap", None), ("objective", "gap")),
        (("gap", "value"), ("objective", "gap")),
        (("accuracy", None), ("accuracy", "mean")),
        (("accuracy", "worst_decile"), ("accuracy", "worst_decile")),
        (("epsilon", None), ("epsilon_verified", "worst")),
        (("epsilon", "mean"), ("epsilon_verified", "worst")),
        (("epsilon", "q90"), ("epsilon_verified", "q90")),
        (("epsilon_claimed", None), ("epsilon_claimed", "worst")),
        (("bytes", None), ("bytes", "")),
    ],
)
def test_a_name_stands_for_a_recorded_metric_and_statistic(asked, meant):
    assert resolve(collection_of(RECORDED), *asked) == meant


def test_epsilon_is_the_claimed_one_where_no_other_was_recorded():
    assert resolve(collection_of([("epsilon_claimed", "worst")]), "epsilon") == ("epsilon_claimed", "worst")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("acuracy", None), r"y 'acuracy' was not recorded.*; it must be one of accuracy.*did you mean accuracy\?"),
        (
            ("accuracy", "worst"),
            r"statistic 'worst' of accuracy was not recorded.*; it must be one of mean, worst_decile",
        ),
    ],
)
def test_what_was_not_recorded_is_refused_with_what_was(asked, says):
    with pytest.raises(InputError, match=says):
        resolve(collection_of(RECORDED), *asked)


def test_updates_are_activations_by_agent_unless_they_were_recorded():
    assert curves(collection_of(RECORDED), "accuracy", "mean", "updates")["x"].tolist() == [0.0, 2.0]
    recorded = collection_of([*RECORDED, ("updates", "mean")])
    recorded.trace.loc[recorded.trace["metric"] == "updates", "value"] = [0.0, 1.5]
    assert curves(recorded, "accuracy", "mean", "updates")["x"].tolist() == [0.0, 1.5]
