"""The gallery: every shipped scenario with its YAML, and the figures of it that the repository has."""

from __future__ import annotations

from pathlib import Path

from ...agents.input_files import read_bytes
from ..language.loading import opening_comment, shipped
from ..language.yaml_source import read_file
from ..reproduction.papers import papers
from .markdown import anchor, block, cell, link, prose, table


def pictures(root: Path) -> dict[str, list[Path]]:
    """Pictures that the repository has, by the scenario that makes them.

    Those of papers are called by the paper's figure, others ``SCENARIO-FIGURE.png``.
    """
    found: dict[str, list[Path]] = {name: [] for name in shipped()}
    figures = {figure.name: figure.scenario for paper in papers() for figure in paper.figures}
    for folder, owners in (("results", {name: name for name in found}), ("results/reproduction", figures)):
        for path in sorted((root / folder).glob("*.png")):
            begun = [name for name in owners if path.stem == name or path.stem.startswith(f"{name}-")]
            if begun:
                found[owners[max(begun, key=len)]].append(path)
    return found


def pages(root: Path) -> tuple[dict[str, str], dict[str, Path]]:
    """The gallery and a page for each scenario, and the pictures that they show by their files' names."""
    shown: dict[str, Path] = {}
    made: dict[str, str] = {}
    rows, strip = [], []
    drawn_by = pictures(root)
    for name, path in shipped().items():
        drawn = drawn_by[name]
        shown |= {each.name: each for each in drawn}
        rows.append((f"[`{name}`](#scenario-{name})", opening_comment(path), str(len(drawn) or "")))
        strip += [_thumbnail(each, name, _title(path)) for each in drawn[:1]]
        made[f"scenario-{name}"] = _page(name, path, drawn)
    gallery = [
        "# Gallery\n",
        "Each figure with the scenario that makes it. Figures of papers are from full runs of `hushnet reproduce`.\n",
        "``````{container} gallery\n",
        *strip,
        "``````\n",
        "## All shipped scenarios\n",
        table(("scenario", "what it asks", "pictures"), rows),
        "```{toctree}\n:hidden:\n\n" + "\n".join(made) + "\n```\n",
    ]
    return {"gallery": "\n".join(gallery)} | made, shown


def _title(path: Path) -> str:
    return str(read_file(path).data.get("title") or path.stem)


def _thumbnail(picture: Path, scenario: str, title: str) -> str:
    """A figure with its scenario's title, both of which lead to the scenario."""
    head = f"```{{figure}} pictures/{picture.name}\n:alt: {title}\n:target: scenario-{scenario}.html\n\n"
    return f"{head}{link(cell(title), f'scenario-{scenario}')}\n```\n"


def _page(name: str, path: Path, drawn: list[Path]) -> str:
    text = [anchor(f"scenario-{name}") + f"# {name}\n", f"*{cell(_title(path))}*\n", prose(opening_comment(path))]
    text += [f"```{{figure}} pictures/{each.name}\n:alt: {each.stem}\n\n`{each.stem}`\n```\n" for each in drawn]
    text += [block(f"hushnet run {name}"), block(read_bytes(path).decode(), "yaml")]
    return "\n".join(text)
