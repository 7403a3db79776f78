"""What ``hushnet explain`` and ``hushnet list`` say of every name that a scenario may give."""

from __future__ import annotations

import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.parameters import LONGEST
from hushnet.protocols import catalog
from hushnet.simulator.cli import main
from hushnet.simulator.language.described import described, kinds_in
from hushnet.simulator.language.figure_parameters import FIGURE_KINDS, Figure
from hushnet.simulator.metrics import METRICS
from hushnet.simulator.shell.explain import explain, matches, topics
from hushnet.simulator.shell.listing import LISTS, lists


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


def test_times_have_a_unit_and_the_bounds_of_their_kind():
    fields = {field.name: field for field in described(kinds_in("latency")["uniform"])}
    assert fields["high"].unit == "time units"
    assert fields["high"].range == f"[0, {LONGEST:,}]"
    assert fields["low"].default == "0"


def test_every_field_of_every_part_has_a_meaning():
    for section in ("task", "topology", "clock", "latency", "loss", "availability"):
        for model in kinds_in(section).values():
            assert [field.name for field in described(model) if not field.meaning and field.name != "kind"] == []


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


def test_one_list_is_asked_for_by_its_name_or_the_singular():
    assert lists("latency") == lists("latencies")
    assert list(lists("metric")["metrics"]) == list(METRICS)
    assert set(lists()) == set(LISTS)
    with pytest.raises(InputError, match=r"no list of 'metrix'; did you mean 'metrics'"):
        lists("metrix")


def test_kinds_of_figures_are_listed_as_the_language_has_them():
    field = next(field for field in described(Figure) if field.name == "kind")
    assert field.type == ", ".join(list(FIGURE_KINDS)[:-1]) + " or " + list(FIGURE_KINDS)[-1]


def test_a_name_that_nothing_has_is_refused_with_a_sentence(capsys):
    assert main(["explain", "gama"]) == 2
    assert "did you mean 'gamma'" in capsys.readouterr().err


def test_code_is_marked_once_in_a_terminal():
    assert [name for name in topics() if "``" in explain(name)] == []


@pytest.mark.parametrize(
    "asked",
    ["record.messages", "record.messages.between", "task.csv.features", "csv.features", "cd.mu", "latency.gamma.shape"],
)
def test_a_field_is_explained_behind_what_has_it(asked):
    text = explain(asked)
    name, _, rest = text.partition("\n")
    assert name.rpartition(".")[2] == asked.rpartition(".")[2]
    assert f"\n  {asked.rpartition('.')[2]}\n" in rest
    assert "fields:" not in rest


def test_a_field_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="nothing is called"):
        explain("task.csv.colour")
