"""The page on writing a step: its two steps agree, and each of its mistakes has the sentence that is printed there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hushnet.protocols.user_files import load_object
from hushnet.simulator.contract import check_contract
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.docs.site import WRITTEN
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

from ..snippets import blocks

PAGE = WRITTEN / "howto-steps.md"
FILES = [text for language, text in blocks(PAGE) if language == "python"]
MISTAKES = [text for language, text in blocks(PAGE) if language == "text"][-20:]
"""By turns what is written, and what is said of it."""


def protocol(written: str, folder: Path) -> type:
    """The page's first protocol with another step."""
    head = FILES[0][: FILES[0].index("    def step(me)")]
    body = "".join(f"    {line}\n" for line in written.splitlines())
    imported = "from hushnet.protocols.steps import batched, per_edge, segment_sum\n"
    (folder / "mine.py").write_text(imported + head + body)
    return load_object("mine.py:Mine", trust_code=True, base=folder)


def said_of(written: str, folder: Path) -> str:
    """What is said of a step: by a run, or else by the contract."""
    mine = protocol(written, folder)
    np.random.seed(0)  # noqa: NPY002 - a mistake of the page
    try:
        run_small(mine, protocol_parameters(mine, {}), engine=BatchedEngine())
        check_contract(mine, {})
    except Exception as error:
        return str(error)
    return "nothing"


@pytest.mark.parametrize("rank", range(10))
def test_a_mistake_has_the_sentence_of_the_page(rank, tmp_path):
    written, printed = MISTAKES[2 * rank : 2 * rank + 2]
    said = said_of(written, tmp_path)
    assert " ".join(printed.split()) == re.sub(r"^.*?mine\.py:\d+, ", "", said)


def test_the_two_steps_of_the_page_give_the_same(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for text in FILES:
        (tmp_path / text[2 : text.index("\n")]).write_text(text)
    plain, fast = (load_object(name, trust_code=True, base=tmp_path) for name in ("mine.py:Mine", "fast.py:Fast"))
    parameters = protocol_parameters(plain, {})
    reference = run_small(plain, parameters, engine=EventEngine())
    worlds = [run_small(kind, parameters, engine=BatchedEngine()) for kind in (plain, fast)]
    assert [world.engine for world in worlds] == ["batched (planned steps)", "batched (steps in batches)"]
    for world in worlds:
        np.testing.assert_allclose(world.state.agent["model"].values, reference.state.agent["model"].values, rtol=1e-12)
        assert np.abs(world.state.agent["model"].values).max() > 0.01
