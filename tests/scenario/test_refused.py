"""Scenarios with one mistake are refused in one sentence: a line of text and its answer each, in `refused.yaml`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hushnet.simulator.cli import main
from ruamel.yaml import YAML

TABLE: dict[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("refused.yaml"))
CASES = [
    pytest.param(group, case, id=f"{name}-{number}")
    for name, group in TABLE.items()
    for number, case in enumerate(group["cases"])
]
FILES = {
    "links.csv": "sender,receiver,delay\n1,0,0.5\n",
    "trace.csv": "agent,up_from,up_to\n0,1,0\n",
    "order.txt": "0\n17\n",
}
FIELD = re.compile(r"^(\w+):.*\n(?:[ \n].*\n)*", re.MULTILINE)


def scenario(base: str, text: str) -> str:
    """A base without the fields that a text has, and the text."""
    given = {field[1] for field in FIELD.finditer(text)}
    return FIELD.sub(lambda field: "" if field[1] in given else field[0], base) + text


@pytest.mark.parametrize(("group", "case"), CASES)
def test_a_mistake_is_one_sentence(group, case, tmp_path, capsys):
    path, out = tmp_path / "s.yaml", tmp_path / "out"
    path.write_text(scenario(group["base"], case["text"].rstrip() + "\n"), encoding="utf-8")
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    commands = [["check", str(path)], ["run", str(path), "--out", str(out), "--quiet"]]
    for command in commands[: 1 + group.get("run", False)]:
        code = group.get("check", 2) if command[0] == "check" else 2
        assert main(command) == code
        said = capsys.readouterr()
        if code == 0:
            continue
        assert said.out == ""
        assert said.err.count("\n") == 1, said.err
        assert said.err.startswith(f"{path}:{case['line']}: " if "line" in case else "")
        assert [words for words in case["says"] if words not in said.err] == [], said.err
    assert not list(out.glob("*/manifest.json"))
