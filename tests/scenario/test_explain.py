"""What ``hushnet explain`` and ``hushnet list`` say of every name that a scenario may give."""

from __future__ import annotations

import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols import catalog
from hushnet.simulator.cli import main
from hushnet.simulator.language.described import described, kinds_in
from hushnet.simulator.metrics import METRICS
from hushnet.simulator.shell.explain import explain, matches, topics


def test_list_gives_every_kind_a_line(capsys):
    assert main(["list"]) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    names = "local coordinate_descent movielens ring gilbert_elliott lognormal on_off poisson"
    assert all(len(lines[name]) > 3 for name in names.split())


def test_everything_that_is_listed_can_be_explained():
    known = topics()
    for name in catalog.names():
        assert f"protocol.{name}" in known
    for name in METRICS:
        assert f"metric.{name}" in known
    for page in known.values():
        assert page().strip()


def test_the_fields_of_a_task_have_type_default_range_and_meaning():
    fields = {field.name: field for field in described(kinds_in("task")["adult"])}
    assert (fields["agents"].type, fields["agents"].default) == ("a whole number", "5")
    assert fields["test_share"].range == "[0, 1)"
    assert fields["kind"].default is None
    assert all(field.meaning for name, field in fields.items() if name != "kind")


def test_a_protocol_is_explained_with_its_equations_and_where_it_is_run():
    page = explain("cd")
    assert page.startswith("protocol.coordinate_descent")
    assert "Q(Theta) = 1/2 sum_{i<j}" in page
    assert "quickstart" in page
    assert "  mu\n" in page


def test_a_name_may_be_short_as_long_as_it_is_one_things():
    known = ["task.adult", "latency.uniform", "protocol.coordinate_descent", "protocol.consensus_admm", "loss.uniform"]
    assert matches("adult", known) == ["task.adult"]
    assert matches("protocols.cd", known) == ["protocol.coordinate_descent"]
    assert matches("coord", known) == ["protocol.coordinate_descent"]
    assert matches("uniform", known) == ["latency.uniform", "loss.uniform"]
    assert matches("latency.uniform", known) == ["latency.uniform"]
    with pytest.raises(InputError, match=r"coordinate_descnt.*did you mean 'coordinate_descent'"):
        explain("coordinate_descnt")


@pytest.mark.parametrize(
    "asked",
    [
        "record.messages",
        "record.messages.between",
        "task.csv.features",
        "csv.features",
        "cd.mu",
        "latency.gamma.shape",
        "time_unit",
        "figures",
        "compute",
        "split",
        "topology.changes",
        "topology.angular_similarity.cutoff",
    ],
)
def test_a_field_is_explained_behind_what_has_it(asked):
    text = explain(asked)
    name, _, rest = text.partition("\n")
    assert name.rpartition(".")[2] == asked.rpartition(".")[2]
    assert f"\n  {asked.rpartition('.')[2]}\n" in rest
    assert "fields:" not in rest
    assert max(map(len, text.splitlines())) <= 80


def test_a_field_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="nothing is called"):
        explain("task.csv.colour")
