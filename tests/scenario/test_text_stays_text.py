"""Text stays what it is wherever it is shown: no formula, no escape, no half of a character, no endless path."""

import json
import shutil

import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.api import run
from hushnet.simulator.cli import main
from hushnet.simulator.language.loading import load
from hushnet.simulator.storage.files import read_json

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
