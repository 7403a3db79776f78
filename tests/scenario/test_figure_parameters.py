"""What a scenario may say about its figures, and what is answered where it says something else."""

from __future__ import annotations

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.language.figure_parameters import Figure, check_figures
from pydantic import ValidationError

SWEPT, PROTOCOLS = ["network.loss", "depth"], ["local", "cd"]
METRICS = ["objective", "accuracy", "epsilon_verified", "mine"]


def checked(*figures, messages=None):
    found = [Figure.model_validate(figure) for figure in figures]
    known = {"metrics": METRICS, "swept": SWEPT, "protocols": PROTOCOLS, "seeds": [0, 1]}
    check_figures(found, **known, messages=messages)
    return found


@pytest.mark.parametrize(
    ("fields", "kind", "x"),
    [
        ({"y": "accuracy"}, "curve", "time"),
        ({"y": "accuracy", "x": "vectors"}, "curve", "vectors"),
        ({"y": "accuracy", "x": "samples"}, "samples", "samples"),
        ({"y": "accuracy", "x": "protocol"}, "bars", "protocol"),
        ({"y": "time_to_target"}, "bars", "protocol"),
        ({"y": "accuracy", "x": "depth"}, "sweep", "depth"),
        ({"y": "accuracy", "x": "depth", "rows": "network.loss"}, "heat", "depth"),
        ({"y": "accuracy", "x": "epsilon_verified"}, "frontier", "epsilon_verified"),
        ({"y": "accuracy", "kind": "frontier"}, "frontier", "epsilon_verified"),
        ({"y": "accuracy", "kind": "frontier", "x": "time_to_target"}, "frontier", "time_to_target"),
        ({"y": "accuracy", "kind": "scatter", "baseline": "local"}, "scatter", "samples"),
        ({"y": "age", "kind": "portrait"}, "portrait", "time"),
        ({"facet": ["accuracy", "objective"]}, "curve", "time"),
    ],
)
def test_a_figures_kind_and_axis_follow_from_what_is_given(fields, kind, x):
    (figure,) = checked(fields)
    assert (figure.drawn_as, figure.x) == (kind, x)


@pytest.mark.parametrize(
    ("fields", "y", "panels"),
    [
        ({"y": "epsilon"}, "epsilon_claimed", ["epsilon_claimed", "epsilon_verified"]),
        ({"y": "epsilon", "x": "depth"}, "epsilon_claimed", ["epsilon_claimed", "epsilon_verified"]),
        ({"facet": ["accuracy", "epsilon"]}, "accuracy", ["accuracy", "epsilon_claimed", "epsilon_verified"]),
    ],
)
def test_a_name_that_a_record_takes_for_several_metrics_has_a_panel_for_each(fields, y, panels):
    figure = Figure.model_validate(fields)
    assert (figure.y, figure.facet) == (y, panels)
    assert figure.statistic == ("mean" if y == "accuracy" else "worst")


def test_several_metrics_have_no_panels_for_something_else():
    with pytest.raises(InputError, match="stands for epsilon_claimed, epsilon_verified; choose one") as caught:
        checked({"y": "epsilon", "facet": "protocol"})
    assert caught.value.field == ("figures", 0, "y")


def test_a_timeline_needs_no_metric_but_a_log():
    (figure,) = checked({"kind": "timeline"}, messages=[0.0, 5.0])
    assert figure.y == "messages"
    with pytest.raises(InputError, match="a timeline needs record") as caught:
        checked({"y": "accuracy"}, {"kind": "timeline"})
    assert caught.value.field == ("figures", 1, "kind")


@pytest.mark.parametrize(
    "fields",
    [
        {"y": "objective", "statistic": "mean"},
        {"y": "accuracy", "statistic": "samples 5-9"},
        {"y": "mine", "statistic": "anything"},
        {"y": "age", "kind": "portrait", "statistic": "value"},
        {"y": "accuracy", "facet": ["objective", "epsilon_verified"], "statistic": "anything"},
    ],
)
def test_a_statistic_that_data_or_code_name_or_that_no_figure_shows_is_not_judged(fields):
    assert checked(fields)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"y": "accuracy", "x": "depth", "kind": "heat"}, "a heat map needs x and rows"),
        ({"y": "accuracy", "x": "time", "kind": "curve", "rows": "depth"}, "rows belongs to heat maps, not to a curve"),
        ({"y": "accuracy", "kind": "scatter"}, "a scatter needs a baseline"),
        ({"y": "accuracy", "baseline": "local"}, "baseline belongs to sweeps, bars, heat maps and scatters"),
        ({"y": "accuracy", "x": "protocol", "wins": True}, "wins needs a baseline, in bars or along a sweep"),
        ({"y": "accuracy", "x": "a", "rows": "b", "baseline": "cd", "wins": True}, "wins needs a baseline, in bars or"),
        ({"facet": ["accuracy", "objective"], "y_label": "both"}, "y_label belongs to figures of one metric"),
        ({"y": "accuracy", "kind": "portrait", "x_label": "east"}, "a portrait has no axes"),
        ({"kind": "timeline", "between": [3.0, 2.0]}, "between .* must be two times, the smaller one first"),
        ({"y": "accuracy", "panels": ["colour"]}, "Input should be 'unit', 'adjacency' or 'observer'"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(fields, sentence):
    with pytest.raises(ValidationError, match=sentence):
        Figure.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "place", "sentence"),
    [
        ({"y": "acuracy"}, ("y",), "metric is not recorded.*accuracy"),
        ({"y": "time_to_target", "x": "time"}, ("y",), "metric is not recorded"),
        ({"y": "accuracy", "x": "latency"}, ("x",), "unknown axis"),
        ({"y": "accuracy", "x": "depth", "rows": "depth"}, ("rows",), "unknown axis; admissible: network.loss"),
        ({"y": "accuracy", "facet": "seed"}, ("facet",), "unknown facet.*admissible: protocol, network.loss, depth"),
        ({"y": "accuracy", "x": "depth", "facet": "depth"}, ("facet",), "unknown facet"),
        ({"facet": ["accuracy", "rmse"]}, ("facet", 1), "metric is not recorded"),
        ({"y": "accuracy", "at": {"mu": 1.0}}, ("at", "mu"), "is not swept"),
        ({"y": "accuracy", "x": "protocol", "baseline": "cb"}, ("baseline",), "unknown protocol.*cd"),
        ({"y": "mine", "x": "depth", "baseline": "cd", "wins": True}, ("y",), "wins needs a metric of which more, or"),
        ({"y": "accuracy", "protocols": ["cd", "dc"]}, ("protocols", 1), "unknown protocol"),
        ({"y": "objective", "kind": "portrait"}, ("y",), "metric is not recorded"),
        ({"y": "objective", "statistic": "gab"}, ("statistic",), "is not recorded; did you mean 'gap'?"),
        ({"y": "accuracy", "x": "depth", "statistic": "q90"}, ("statistic",), "recorded; admissible: mean, worst_dec"),
        ({"facet": ["objective", "accuracy"], "statistic": "worst"}, ("statistic",), "is not recorded"),
    ],
)
def test_what_the_experiment_will_not_have_is_named_with_its_place(fields, place, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        checked(fields)
    assert caught.value.field == ("figures", 0, *place)
