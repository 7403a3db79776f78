"""The site is built without a warning, has everything that can be named, and no link of it is broken."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hushnet.agents import errors
from hushnet.protocols import catalog
from hushnet.protocols.privacy.mechanisms import noises
from hushnet.simulator.docs import interface, reference, site
from hushnet.simulator.docs.formulas import set_in
from hushnet.simulator.docs.markdown import prose, table
from hushnet.simulator.language.described import SECTIONS, described, kinds_in
from hushnet.simulator.language.figure_kinds import FIGURE_KINDS
from hushnet.simulator.language.loading import load, shipped
from hushnet.simulator.language.scenario import Scenario
from hushnet.simulator.metrics import METRICS
from spellchecker import SpellChecker

BUILD = """\
import shutil, sys
import sphinx.cmd.build as sphinx
from hushnet.simulator.docs import site
sources, out, builder = sys.argv[1:]
build = sphinx.build_main
sphinx.build_main = lambda given: build([builder if one == "html" else one for one in given])
site.sources = lambda folder: shutil.copytree(sources, folder, dirs_exist_ok=True)
sys.exit(site.main([out]))
"""
"""``python -m hushnet.simulator.docs`` with sources that are there already, and a builder of Sphinx's."""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of the sources of all pages."""
    folder = tmp_path_factory.mktemp("sources")
    site.sources(folder)
    return folder


@pytest.fixture(scope="module")
def sources(written):
    return {path.stem: path.read_text() for path in written.glob("*.md")}


def build(written, out, builder):
    """Sphinx's warnings would be errors."""
    pytest.importorskip("sphinx", reason="the site needs the extra docs")
    command = [sys.executable, "-c", BUILD, written, out, builder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def built(written, tmp_path_factory):
    """The folder of the site of these sources."""
    out = tmp_path_factory.mktemp("site")
    build(written, out, "html")
    return out


def test_every_page_is_read_without_a_warning(written, tmp_path):
    build(written, tmp_path, "dummy")


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        self.links += [value for name in ("href", "src") if (value := given.get(name))]


def broken(folder: Path) -> list[str]:
    """Links within a folder of pages that lead nowhere."""
    pages = {path.resolve(): Page(path.read_text()) for path in folder.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            place, _, anchor = link.partition("#")
            if urllib.parse.urlsplit(link).scheme or link.startswith("//"):
                continue
            target = (path.parent / urllib.parse.unquote(place.partition("?")[0])).resolve() if place else path
            if not target.exists():
                wrong.append(f"{path.name}: {link}: no such file")
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].anchors:
                wrong.append(f"{path.name}: {link}: no such anchor")
    return wrong


def test_no_two_pages_have_one_title(sources):
    titles = [title[1] for text in sources.values() if (title := re.search(r"^# (.+)$", text, re.MULTILINE))]
    assert len(titles) > 20
    assert sorted({title for title in titles if titles.count(title) > 1}) == []


def test_no_link_is_broken_and_nothing_is_fetched(built):
    assert broken(built) == []
    for path in built.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|link)[^>]+(?:src|href)=\"(https?:[^\"]+)", path.read_text())
        assert loaded == [], path


def test_a_broken_link_would_be_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a><a href="c.html">c</a><a href="b.html#not">d</a>')
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>')
    assert [line.partition(": ")[2] for line in broken(tmp_path)] == [
        "c.html: no such file",
        "b.html#not: no such anchor",
    ]


def test_every_page_is_in_the_contents(sources):
    listed = {name for names in site.CONTENTS.values() for name in names}
    below = {name for name in sources if name.startswith(("scenario-", "protocol-", "api-"))}
    assert set(sources) == listed | below | {"index"}


def test_every_field_that_a_scenario_may_have_is_described(sources):
    parts = [(Scenario, "scenario")]
    parts += [(model, "scenario") for model in reference._parts(Scenario)]
    parts += [(model, section) for section in SECTIONS for model in kinds_in(section).values()]
    parts += [(catalog.resolve(name).Parameters, f"protocol-{name}") for name in catalog.names()]
    assert len(parts) > 60
    for model, page in parts:
        for field in described(model):
            assert f"| `{field.name}` |" in sources[page], (model.__name__, field.name)
            assert field.meaning or field.name == "kind"


def test_everything_that_can_be_named_has_its_place(sources):
    for section in SECTIONS:
        for kind in kinds_in(section):
            assert f"({section}-{kind})=" in sources[section]
    for name in METRICS:
        assert f"(metric-{name})=" in sources["metrics"]
    for name in FIGURE_KINDS:
        assert f"| `{name}` |" in sources["figures"]
    for name in noises():
        assert f"## {name}\n" in sources["mechanisms"]
    for name in shipped():
        assert f"(scenario-{name})=" in sources[f"scenario-{name}"]
    for error in reference._below(errors.HushnetError):
        assert f"| `{error.__name__}` | {error.exit_code} |" in sources["errors"]
    for command in ("run", "check", "explain", "reproduce", "new scenario"):
        assert f"## hushnet {command}\n" in sources["commands"]
    assert "`--verbose`" in sources["commands"]


ELSEWHERE, APART = {"dual_averaging"}, {"federated_averaging", "dada"}
"""Methods of the shelf whose scenarios are those of their papers, and that need a server or targets of their own."""


def test_every_method_of_the_shelf_has_a_scenario_of_its_own_whose_picture_its_page_shows(sources):
    kinds = {one.kind for one in load("shelf").scenario.protocols.values()} - ELSEWHERE | APART
    own = {f"shelf-{kind.replace('_', '-')}": kind for kind in sorted(kinds)}
    assert {*own, "shelf-local-sgd"} == {name for name in shipped() if name.startswith("shelf-")}
    for name, kind in own.items():
        text, loaded = shipped()[name].read_text(), load(name).scenario
        assert "# What to expect: " in text
        assert "# Source: " in text
        assert kind in {one.kind for one in loaded.protocols.values()}
        page = sources[f"protocol-{kind}"]
        assert f"pictures/{name}-{loaded.figures[0].name}.png" in page
        assert "Use it " in page
        assert "What breaks it: " in " ".join(page.split())


def test_what_pages_import_is_public_and_what_is_public_is_there(sources):
    listed = [pair for modules in interface.PUBLIC.values() for pair in modules.items()]
    public = {(module, name) for module, given in listed for name in interface.names(module, given)}
    public |= {(module, name) for module, given in interface.REGISTRIES.items() for name in given.split()}
    for module, name in public:
        assert hasattr(importlib.import_module(module), name), (module, name)
    blocks = "\n".join(text for page in sources.values() for text in re.findall(r"(?s)```python\n(.*?)```", page))
    found = re.findall(r"^from (hushnet[\w.]*) import ([\w, ]+)$", blocks, re.MULTILINE)
    imported = {(module, name.strip()) for module, names in found for name in names.split(",")}
    assert len(imported) > 20
    assert imported - public == set()


def test_formulas_are_set_and_every_metric_has_one(sources):
    assert all("{math}`" in metric.definition for metric in METRICS.values())
    assert "{math}`x_{i}(t+1) = \\sum_{j} w_{ij} x_{j}(t)" in sources["protocol-gradient_tracking"]
    assert sum(text.count("{math}") for name, text in sources.items() if name.startswith("protocol-")) >= 25
    assert set_in("an agent's own rows") == "an agent's own rows"


def test_search_finds_words_of_the_field_and_blocks_have_a_button_that_copies(built):
    index = (built / "searchindex.js").read_text()
    for word in ("momentum", "graphml", "jupyt", "gradient", "track"):
        assert re.search(rf'[{{,]"?{word}"?:', index), word
    assert "copybutton.js" in (built / "index.html").read_text()


def test_a_keyboard_reaches_every_code_block_and_table(built):
    for path in built.glob("*.html"):
        assert re.findall(r"<pre>|<div class=\"(?:table-wrapper|formula)\b", path.read_text()) == [], path


@pytest.mark.parametrize("name", catalog.names())
def test_every_protocol_says_what_it_sends_reveals_and_keeps(name, sources):
    page = sources[f"protocol-{name}"]
    for part in (
        "Equations and source",
        "what it sends",
        "What it reveals",
        "What it keeps",
        "Fields",
        "Where it runs",
    ):
        heading = re.search(rf"## [^\n]*{part}[^\n]*\n(.*?)(?=\n## |\Z)", page, re.DOTALL)
        assert heading, part
        assert len(heading[1].strip()) > 20, part


def test_private_protocols_are_shown_with_the_noise_that_was_drawn(sources):
    for name in ("coordinate_descent", "dual_averaging", "feature_sharing", "local_dp", "push_sum_dual_averaging"):
        revealed = sources[f"protocol-{name}"].split("## What it reveals")[1].split("\n## ")[0]
        assert "gaussian noise" in revealed
        assert "data without noise" in revealed


def test_the_gallery_shows_what_the_repository_has(sources):
    shown = {name for text in sources.values() for name in re.findall(r"\{figure\} pictures/(\S+)", text)}
    kept = {path.name for folder in ("results", "results/reproduction") for path in (site.ROOT / folder).glob("*.png")}
    assert shown == kept


def test_docstrings_become_markdown():
    rows = "==  ===\na   ``b``\n==  ===\n1   x|y\n    z\n==  ==="
    text = prose(f"A sum::\n\n    a |b| c\n\n    d\n\n{rows}\n\nLast *word* <x>.")
    assert "```text\na |b| c\n\nd\n```" in text
    assert "| a | `b` |" in text
    assert r"| 1 | x\|y z |" in text
    assert text.endswith("Last \\*word\\* &lt;x>.\n")
    assert table(("a",), [("`x|y` *",)]).endswith("| `x\\|y` \\* |\n")


def test_outside_of_a_clone_it_is_said_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(site, "ROOT", tmp_path)
    assert site.main([str(tmp_path / "out")]) == 2
    assert "no clone of hushnet's repository" in capsys.readouterr().err
    assert site.main([]) == 2


def test_every_word_is_spelled(sources):
    known = SpellChecker()
    known.word_frequency.load_words((Path(__file__).with_name("words.txt")).read_text().split())
    wrong = {name: sorted(known.unknown(words(text))) for name, text in sources.items()}
    assert {name: unknown for name, unknown in wrong.items() if unknown} == {}
    assert known.unknown(words("An agnet of the neighbours")) == {"agnet"}


def words(text: str) -> set[str]:
    """Words of a page, without code, names of files and parts of links."""
    for code in (r"(?s)```.*?```", r"`[^`]*`", r"\]\([^)]*\)", r"https?://\S+", r"\\_|&lt;|&gt;", r"\{[\w:]+\}"):
        text = re.sub(code, " ", text)
    found = re.findall(r"(?<![\w./=-])[A-Za-z']{3,}(?![\w/=])", text)
    plain = (word.strip("'").removesuffix("'s").lower() for word in found if not re.search("[a-z][A-Z]", word))
    return {word for word in plain if "'" not in word}  # a derivative is no word
