"""All pages of the site in one folder, and Sphinx over them: warnings are errors, and nothing is fetched."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer

from ...agents.errors import InputError
from ...agents.input_files import read_bytes
from ..reproduction.papers import papers
from . import gallery, interface, protocols, reference

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = Path(__file__).with_name("pages")
INCLUDED = {
    "architecture": "simulator/ARCHITECTURE.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
    "tutorial-first-protocol": "scenarios/tutorials/first-protocol.md",
    "tutorial-comparison": "scenarios/tutorials/comparison-for-a-paper.md",
    "reproduction": "results/reproduction/README.md",
    **{f"paper-{paper.name}": f"results/reproduction/{paper.name}.md" for paper in papers()},
    "paper-changes": "results/reproduction/changes.md",
}
"""Pages that the repository has elsewhere, by their names here."""
CONTENTS = {
    "Start": ("start-figure", "start-protocol", "start-comparison"),
    "Tutorials": ("tutorial-first-protocol", "tutorial-comparison"),
    "How to": (
        "howto-steps",
        "howto-pairs",
        "howto-own",
        "howto-kinds",
        "howto-latency",
        "howto-data",
        "howto-graphs",
        "howto-adversaries",
        "howto-observers",
        "howto-sweeps",
        "howto-budget",
        "howto-replay",
        "howto-view",
        "howto-artifact",
    ),
    "Background": ("time", "rounds", "pairing", "epsilon", "observers", "trust"),
    "Reference": (
        "scenario",
        *reference.SECTIONS,
        "metrics",
        "figures",
        "mechanisms",
        "protocols",
        "commands",
        "errors",
        "api",
    ),
    "Gallery and papers": (
        "gallery",
        "systems",
        "reproduction",
        *(name for name in INCLUDED if name.startswith("paper-")),
    ),
    "Project": ("coming-from", "questions", "public", "cite", "architecture", "contributing", "security", "changelog"),
}
"""Pages by the part of the site that they belong to."""
CONFIGURATION: dict[str, Any] = {
    "project": "hushnet",
    "author": "The hushnet developers",
    "extensions": "myst_parser,sphinx.ext.autodoc,sphinx.ext.napoleon,sphinx_copybutton,"
    "hushnet.simulator.docs.plain,hushnet.simulator.docs.formulas",
    "html_theme": "furo",
    "html_math_renderer": "mathml",
    "html_static_path": "static",
    "html_css_files": "site.css",
    "default_role": "literal",
    "autodoc_member_order": "bysource",
    "autodoc_typehints": "none",
    "napoleon_google_docstring": "0",
    "napoleon_use_ivar": "1",
    "html_show_copyright": "0",
    "html_copy_source": "0",
    "myst_heading_anchors": "3",
    "highlight_language": "text",
    "suppress_warnings": "myst.xref_ambiguous,ref.python",
}

ACCESSIBLE = {
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper ': '<div tabindex="0" class="table-wrapper ',
    '<div class="formula"': '<div tabindex="0" class="formula"',
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    '<div id="search-results"></div>': '<h1>Search</h1>\n<div id="search-results"></div>',
}
"""Text of the HTML of the theme, and what makes wide things scroll by keyboard and landmarks have names."""


def sources(folder: Path) -> None:
    """Write the sources of all pages into an empty folder.

    Raises `InputError` if hushnet does not run from a clone of its repository, which has pages that an installation
    lacks.
    """
    missing = [place for place in INCLUDED.values() if not (ROOT / place).is_file()]
    if missing:
        raise InputError(
            f"{ROOT}: is no clone of hushnet's repository ({missing[0]} is missing), which the site is made from"
        )
    drawn, shown = gallery.pages(ROOT)
    made = {**reference.pages(), **protocols.pages(gallery.pictures(ROOT)), **drawn, **interface.pages()}
    for path in sorted(WRITTEN.glob("*.md")):
        made[path.stem] = read_bytes(path).decode()
    for name, place in INCLUDED.items():
        made[name], pictures = _included(place)
        shown |= pictures
    made["index"] = _index(made["index"])
    for name, text in made.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "static").mkdir()
    (folder / "static" / "site.css").write_bytes(read_bytes(WRITTEN.with_name("site.css")))
    shown |= {path.name: path for path in sorted((WRITTEN / "pictures").glob("*.png"))}
    (folder / "pictures").mkdir()
    for name, path in shown.items():
        (folder / "pictures" / name).write_bytes(read_bytes(path))


def _included(place: str) -> tuple[str, dict[str, Path]]:
    """A page of the repository, its links turned to pages of the site or left as words."""
    here = (ROOT / place).parent
    names = {str((ROOT / path).resolve()): name for name, path in INCLUDED.items()}
    names |= {str(path): path.stem for path in WRITTEN.glob("*.md")}
    pictures: dict[str, Path] = {}

    def turned(found: re.Match[str]) -> str:
        sign, text, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        path = (here / target.partition("#")[0]).resolve()
        if sign:
            pictures[path.name] = path
            return f"![{text}](pictures/{path.name})"
        return f"[{text}]({names[str(path)]}.md)" if str(path) in names else text

    text = read_bytes(ROOT / place).decode()
    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", turned, text), pictures


def _index(opening: str) -> str:
    trees = []
    for title, pages in CONTENTS.items():
        listed = "\n".join(pages)
        trees.append(f"```{{toctree}}\n:caption: {title}\n:maxdepth: 1\n\n{listed}\n```\n")
    return "\n".join([opening, *trees])


def build(out: Path, *, quiet: bool = True) -> int:
    """Build the site into a folder, which is made if it is missing; returns the number of pages.

    If `quiet`, Sphinx says only what is wrong. Raises `InputError` if the extra ``docs`` is not installed, or Sphinx
    warns of anything; it prints its warnings.
    """
    try:
        from sphinx.cmd.build import build_main
    except ImportError as missing:
        raise InputError("the site needs the extra docs: pip install -e '.[docs]'") from missing
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "pages"
        folder.mkdir()
        sources(folder)
        settings: Mapping[str, Any] = {**CONFIGURATION, "version": version("hushnet"), "release": version("hushnet")}
        options = [option for name, value in settings.items() for option in ("-D", f"{name}={value}")]
        flags = ["-q"] if quiet else []
        code = build_main(
            ["-C", "-W", "--keep-going", "-b", "html", *flags, *options, "-d", f"{made}/kept", str(folder), str(out)]
        )
        if code:
            raise InputError(f"{out}: Sphinx warned, which a site of hushnet may not; see above")
        for page in out.glob("*.html"):
            text = read_bytes(page).decode()
            for plain, accessible in ACCESSIBLE.items():
                text = text.replace(plain, accessible)
            page.write_text(text, encoding="utf-8")
        return len(list(folder.glob("*.md")))


def main(arguments: list[str]) -> int:
    """``python -m hushnet.simulator.docs FOLDER``."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        typer.echo("usage: python -m hushnet.simulator.docs FOLDER", err=True)
        return 2
    try:
        pages = build(Path(arguments[0]))
    except InputError as error:
        typer.echo(str(error), err=True)
        return error.exit_code
    typer.echo(f"{pages} pages: {Path(arguments[0]) / 'index.html'}")
    return 0
