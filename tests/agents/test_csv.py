"""A user's own CSV file: what is read, how rows are dealt and scaled, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tasks.csv_table import CsvTable
from hushnet.agents.tasks.task import Task
from pydantic import ValidationError

HOUSES = "town,rooms,area,sold\nA,2,50,yes\nB,3,80,no\nA,4,70,no\nB,1,20,yes\nA,5,99,yes\n"
EVEN = {"kind": "even", "agents": 2}


def build(folder: Path, text: str = HOUSES, seed: int = 0, **fields) -> Task:
    (folder / "data.csv").write_bytes(text.encode())
    given = {"kind": "csv", "path": "data.csv", "label": "sold", **fields}
    if "split" not in given:
        given.setdefault("agent", "town")
    return CsvTable(**given).build(rng=np.random.default_rng(seed), data_dir=None, base=folder)


def refused(folder: Path, text: str = HOUSES, **fields) -> InputError:
    with pytest.raises(InputError) as caught:
        build(folder, text, **fields)
    assert "\n" not in str(caught.value)
    return caught.value


def numbers(rows: int, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    lines = [f"{a:.6f},{b:.6f},{int(a + b > 0)}" for a, b in rng.standard_normal((rows, 2))]
    return "a,b,sold\n" + "\n".join(lines) + "\n"


def test_rows_go_to_the_agent_that_they_name(tmp_path):
    task = build(tmp_path, test_share=0.0, intercept=False)
    assert task.ids == ["A", "B"]
    assert task.train.counts.tolist() == [3, 2]
    assert task.train.shard(0).features.tolist() == [[2, 50], [4, 70], [5, 99]]
    assert task.train.shard(1).labels.tolist() == [-1.0, 1.0]
    assert task.notes["labels"] == {"-1": "no", "+1": "yes"}
    assert task.notes["features"] == ["rooms", "area"]


def test_long_ids_that_floats_do_not_tell_apart_are_those_of_several_agents(tmp_path):
    first, other = "1460323737035677698", "1460323737035677699"
    text = HOUSES.replace("A", first).replace("B", other)
    task = build(tmp_path, f"{text}0{first},1,1,yes\n", test_share=0.0)
    assert task.ids == [first, other]
    assert task.train.counts.tolist() == [4, 2]


def test_lines_that_end_in_a_carriage_return_alone_are_said_to(tmp_path):
    said = str(refused(tmp_path, HOUSES.replace("\n", "\r")))
    assert "lines end in a carriage return alone; save the file with usual line ends" in said


def test_the_squared_loss_takes_real_labels(tmp_path):
    task = build(tmp_path, label="area", features=["rooms"], loss="squared", test_share=0.0)
    assert task.metric == "rmse"
    assert task.train.shard(1).labels.tolist() == [80.0, 20.0]


def test_categorical_columns_are_one_hot_encoded_and_this_is_listed_as_assumed_public(tmp_path):
    task = build(tmp_path, label="sold", split=EVEN, categorical=["town"], test_share=0.0)
    assert task.notes["features"] == ["town=A", "town=B", "rooms", "area", "intercept"]
    assert np.all(task.train.features[:, :2].sum(axis=1) == 1)
    assert any("categorical" in item for item in task.assumed_public)


def test_regularisation_is_a_number_or_one_over_the_training_rows(tmp_path):
    assert build(tmp_path, test_share=0.0).regularisation.tolist() == [1 / 3, 1 / 2]
    assert build(tmp_path, regularisation=0.2).regularisation.tolist() == [0.2, 0.2]
    with pytest.raises(ValidationError):
        build(tmp_path, regularisation=0.0)


def test_rows_scaled_to_unit_length_have_a_bound_that_is_known_in_advance(tmp_path):
    task = build(tmp_path, scaling="unit_row")
    np.testing.assert_allclose(np.linalg.norm(task.train.features, axis=1), 1.0)
    assert task.bounds == {"l1": pytest.approx(np.sqrt(3)), "l2": 1.0}
    assert task.assumed_public == ()


@pytest.mark.parametrize("scaling", ["standard", "max_abs"])
def test_column_scaling_uses_training_rows_only_and_is_listed_as_assumed_public(tmp_path, scaling):
    task = build(tmp_path, numbers(200), split=EVEN, scaling=scaling, intercept=False)
    if scaling == "standard":
        np.testing.assert_allclose(task.train.features.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(task.train.features.std(axis=0), 1.0)
        assert abs(task.test.features.mean()) > 1e-6
    else:
        np.testing.assert_allclose(np.abs(task.train.features).max(axis=0), 1.0)
    assert task.bounds == {}
    assert len(task.assumed_public) == 1


@pytest.mark.parametrize("rows", range(6, 20))
def test_a_column_with_one_value_is_zero_once_it_has_mean_zero(tmp_path, rows):
    """Whatever the mean of equal numbers is rounded to; one test row differs, by a third of what is largest."""
    text = "a,b,sold\n" + "".join(f"{0.1 if row else 0.15},{row},{row % 2}\n" for row in range(rows))
    tasks = [build(tmp_path, text, seed, split=EVEN, scaling="standard", test_share=0.4) for seed in range(8)]
    apart = [task for task in tasks if len(np.unique(task.train.features[:, 0])) == 1]
    assert apart
    for task in apart:
        assert not task.train.features[:, 0].any()
        assert np.abs(task.test.features[:, 0]).max() < 1


@pytest.mark.parametrize(
    "split",
    [
        {"kind": "even", "agents": 7},
        {"kind": "dirichlet", "agents": 7, "concentration": 0.2},
        {"kind": "by_size", "sizes": [50, 0, 20, 7]},
    ],
)
def test_every_row_is_dealt_exactly_once_or_reported_as_left_out(tmp_path, split):
    task = build(tmp_path, numbers(100), split=split, intercept=False)
    rows = np.concatenate([task.train.features, task.test.features])
    assert len(np.unique(rows, axis=0)) == len(rows) == 100 - task.notes["rows_left_out"]
    if split["kind"] == "even":
        assert sorted(task.train.counts + task.test.counts) == [14, 14, 14, 14, 14, 15, 15]
    if split["kind"] == "by_size":
        assert (task.train.counts + task.test.counts).tolist() == [50, 0, 20, 7]
        assert task.regularisation[1] == 0.0
        assert task.notes["rows_left_out"] == 23


def test_a_small_concentration_skews_the_classes(tmp_path):
    """Seed 0, no randomness left: imbalance within agents is 1 if none mixes classes, 0 if all are balanced."""

    def imbalance(concentration: float) -> float:
        split = {"kind": "dirichlet", "agents": 20, "concentration": concentration}
        table = build(tmp_path, numbers(600), split=split, test_share=0.0).train
        return float(sum(abs(table.shard(agent).labels.sum()) for agent in range(20)) / len(table.labels))

    assert imbalance(0.05) > 0.7 > 0.2 > imbalance(1000.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv:1: has no column names"),
        ("town,rooms,area,sold\n", "data.csv: has a header line only"),
        ("town,x,x,sold\nA,1,2,0\n", "data.csv:1: the column 'x' occurs twice"),
        ("town,,sold\nA,1,0\n", "data.csv:1: column 2 has no name"),
        ("town,x,sold\nA,1,0\n\nB,2\n", "data.csv:4: has 2 values; 3 are needed"),
        ("town,x,sold\nA,1,0\nB,two,1\n", "data.csv:3: column 'x' has 'two', which must be a finite number"),
        ("town,x,sold\nA,1,0\nB, ,1\n", "data.csv:3: column 'x' is empty"),
        ("town,x,sold\nA,1,0\n,1,1\n", "data.csv:3: column 'town' is empty"),
        ("town,x,sold\nA,1,0\nB,1,0\n", "data.csv: column 'sold' has 1 distinct values ('0')"),
        ("town,x,sold\nA,1,a\nB,1,b\nB,2,c\n", "has 3 distinct values ('a', 'b', 'c'); the loss logistic needs two"),
        ('town,x,sold\n"A\nA",1,0\nB,1,0\nB,?,1\n', "data.csv:5: column 'x' has '?'"),
        ('town,x,sold\nA,1,0\nB,"1,0\n', "data.csv:3: is not a row of a CSV file"),
    ],
)
def test_a_bad_file_is_refused_with_line_column_and_value(tmp_path, text, message):
    assert message in str(refused(tmp_path, text))


def test_an_unknown_column_is_refused_with_the_nearest_match(tmp_path):
    error = refused(tmp_path, label="sould")
    assert "there is no column 'sould'; did you mean 'sold'?" in str(error)
    assert error.field == ("task", "label")
    error = refused(tmp_path, features=["rooms", "zzz"])
    assert "there are 'town', 'rooms', 'area', 'sold'" in str(error)
    assert error.field == ("task", "features")
    assert refused(tmp_path, agent="twon").field == ("task", "agent")


def test_a_file_that_is_missing_or_not_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read as text"):
        CsvTable(kind="csv", path="none.csv", label="y", agent="a").build(
            rng=np.random.default_rng(0), data_dir=None, base=tmp_path
        )
    for content, words in (
        (b"a,y\n\xff\xfe,1\n", r"bytes.csv:2: is not UTF-8 text.*iconv -f WINDOWS-1252"),
        ("a,y\nb,1\n".encode("utf-16"), r"bytes.csv:1: is not UTF-8 text.*iconv -f UTF-16"),
    ):
        (tmp_path / "bytes.csv").write_bytes(content)
        with pytest.raises(InputError, match=words):
            CsvTable(kind="csv", path="bytes.csv", label="y", agent="a").build(
                rng=np.random.default_rng(0), data_dir=None, base=tmp_path
            )


@pytest.mark.parametrize(
    ("split", "field"),
    [
        ({"kind": "even", "agents": 6}, "agents"),
        ({"kind": "by_size", "sizes": [3, 3]}, "sizes"),
        ({"kind": "by_size", "sizes": [0, 0]}, "sizes"),
    ],
)
def test_a_split_that_does_not_fit_the_rows_is_refused(tmp_path, split, field):
    error = refused(tmp_path, split=split, features=["rooms"])
    assert error.field == ("task", "split", field)
    assert "5" in str(error)


@pytest.mark.parametrize(
    "fields",
    [
        {"agent": "town", "split": EVEN},
        {"agent": None},
        {"features": ["sold"]},
        {"features": ["rooms"], "categorical": ["area"]},
        {"categorical": ["town"]},
        {"agent": "sold"},
        {"features": []},
        {"features": ["rooms", "rooms"]},
        {"features": ["rooms", "town"], "agent": None, "split": EVEN, "categorical": ["town", "town"]},
    ],
)
def test_contradictory_fields_are_refused(tmp_path, fields):
    with pytest.raises(ValidationError):
        build(tmp_path, **fields)


HOLES = "town,size,colour,sold\nA,1,red,0\nA,,blue,1\nB,3,NA,0\nB,8,red,1\n"


def of_holes(folder, **fields):
    task = build(folder, HOLES, test_share=0.0, intercept=False, categorical=["colour"], **fields)
    return task, task.train.features.tolist()


def test_rows_with_missing_values_are_left_out_where_that_is_asked_for(tmp_path):
    task, rows = of_holes(tmp_path, missing="drop")
    assert rows == [[1, 1], [8, 1]]
    assert task.notes["rows_left_out"] == 2


def test_missing_values_are_medians_and_a_category_of_their_own(tmp_path):
    task, rows = of_holes(tmp_path, missing="median")
    assert task.notes["features"] == ["size", "colour=blue", "colour=missing", "colour=red"]
    assert rows == [[1, 0, 0, 1], [3, 1, 0, 0], [3, 0, 1, 0], [8, 0, 0, 1]]
    assert any("medians of columns" in what for what in task.assumed_public)


def test_columns_without_a_value_and_files_without_a_whole_row_are_refused(tmp_path):
    assert "has no value at all" in str(refused(tmp_path, "town,x,sold\nA,?,0\nB,,1\n", missing="median"))
    assert "no row has a value in every column" in str(refused(tmp_path, "town,x,sold\nA,?,0\nB,,1\n", missing="drop"))


def test_a_spreadsheets_decimal_commas_and_dates_are_numbers(tmp_path):
    text = "town;price;since;sold\nA;1.234,5;02.01.1970;0\nB;2,25;1970-01-03;1\n"
    task = build(tmp_path, text, delimiter=";", decimal=",", dates=["since"], test_share=0.0, intercept=False)
    assert task.train.features.tolist() == [[1234.5, 1], [2.25, 2]]
    assert "'soon', which must be" in str(
        refused(tmp_path, "town,since,sold\nA,soon,0\nB,1970-01-01,1\n", dates=["since"])
    )


def test_all_columns_that_are_wrong_are_told_at_once_with_their_lines(tmp_path):
    text = "town,x,y,sold\nA,one,1,0\nB,two,2,1\nB,3,?,1\n"
    with pytest.raises(InputError) as caught:
        build(tmp_path, text)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{tmp_path}/data.csv:2: column 'x' has 'one'")
    assert first.endswith("(as in line 3)")
    assert second.startswith(f"{tmp_path}/data.csv:4: column 'y' has '?'")


def test_dirichlet_without_classes_is_refused(tmp_path):
    split = {"kind": "dirichlet", "agents": 2, "concentration": 1.0}
    error = refused(tmp_path, split=split, label="area", features=["rooms"], loss="squared")
    assert "needs classes" in str(error)
