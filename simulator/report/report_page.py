"""The page itself: the content of every section, put into one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...agents.errors import InputError
from ...agents.input_files import read_bytes
from ..analysis.aggregate import resolve
from ..analysis.apart import set_apart
from ..analysis.results import Collection, load_all
from ..analysis.summary import held_against_each_other, trivial_rows, uncovered
from ..analysis.targets import describe, target_of
from ..analysis.trivial_values import unbeaten
from ..figures.series_style import COLOURS
from ..storage.files import put_file, writing, yaml_text
from . import charts, overview, reproduction
from .choices import choices
from .grid import Grid
from .privacy import observed_rows, privacy_rows, unprotected
from .report_comparison import comparison
from .report_runs import pictures, runs
from .report_winners import METHOD, winners

FOLDER = Path(__file__).parent
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MISSING = "hushnet report needs plotly; install it with: pip install plotly"


def write_report(results: Path, out: Path | None = None) -> Path:
    """Write a page about ``results/<scenario>``, by default into its ``report.html``, and return where it is.

    Raises `InputError` if there is no finished run, a file is damaged, the page cannot be written, or plotly is
    missing.
    """
    results = Path(results)
    path = Path(out) if out is not None else results / "report.html"
    beside = path.parent.resolve() == results.resolve()
    text = page(load_all(results), results, beside=beside)
    with writing(path):
        put_file(text.encode(), path, within=None if out is not None else results)
    return path


def page(collection: Collection, folder: Path, *, beside: bool = False) -> str:
    """The page of a collection of runs that were read from a folder, as HTML.

    Lying `beside` the runs' files, in that folder, it can link to them. Raises `InputError` if plotly is missing.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise InputError(MISSING) from error
    shown = content(collection, folder)
    shown |= {"beside": beside, "replay": beside and (folder / "replay.html").is_file()}
    own = ("charts.js", "script.js")
    return rendered(FOLDER, "page.html", shown, style="style.css", scripts=own, library=get_plotlyjs())


def rendered(
    folder: Path, template: str, content: Mapping[str, Any], *, style: str, scripts: Sequence[str], library: str = ""
) -> str:
    """A page in one file, with its style and scripts, which may connect to nothing.

    Template (of jinja2, in which content is escaped), style and scripts are files in a folder of this package; the text
    of a library comes before the scripts.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":"), "ensure_ascii": False}
    own = [read_bytes(folder / name).decode() for name in scripts]
    texts = [text.replace("\r", "") for text in [library, *own] if text]
    return environment.get_template(template).render(
        **content,
        version=importlib.metadata.version("hushnet"),
        policy=policy(texts),
        scripts=[Markup(text) for text in texts],
        style=Markup(read_bytes(folder / style).decode().replace("\r", "")),
    )


def policy(scripts: list[str]) -> str:
    """A content security policy: these scripts and nothing else, and no connection to anywhere."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    sources = " ".join(f"'sha256-{text}'" for text in hashes)
    # Plotly writes its style rules and its pictures for saving itself.
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def content(collection: Collection, folder: Path) -> dict[str, Any]:
    """Everything that the template shows, and under ``data`` what the script draws."""
    grid, said = Grid(collection), collection.kinds.sentences(held_against_each_other(collection))
    apart = set_apart(collection)
    first = collection.manifests[0]["scenario"]
    name = str(collection.index.get("scenario") or first.get("scenario") or "results")
    curves, finals = charts.curves(apart, grid), charts.finals(apart, grid)
    own, won = finals.pop("own"), winners(collection, grid)
    start = _start(collection, curves)
    shown = {
        "grid": [axis.name for axis in grid.axes],
        "axes": [axis.plain() for axis in grid.axes],
        "headline": overview.headline(collection, grid, finals, trivial_rows(collection)),
        "privacy": privacy_rows(collection, grid),
        "observed": observed_rows(collection, grid),
        "unprotected": unprotected(collection, grid),
        "uncovered": uncovered(collection),
        "kinds": said,
        "beaten": [said for said, loud in unbeaten(apart) if loud],
        "unbeaten": [said for said, loud in unbeaten(apart) if not loud],
        "warnings": overview.warnings(collection),
        "protocols": overview.protocols(collection),
        "setting": overview.setting(collection),
        "failures": overview.failures(collection, grid),
        "winners": won,
        "runs_table": runs(collection, grid, finals, own),
        "pictures": pictures(collection, folder),
        "comparison": comparison(collection, grid, {part["measure"] for part in won}),
        "tuning": choices(collection, folder),
        **_reproduction(collection, name, folder),
    }
    measured = set(collection.trace["metric"])
    return {
        "title": str(first.get("title") or name),
        "lead": overview.lead(collection, name),
        "description": str(first.get("description") or ""),
        "alarms": overview.alarms(collection, shown),
        "target": describe(target) if str((target := target_of(collection))["metric"]) in measured else "",
        "thinned": overview.thinned(curves),
        "swept": bool(grid.axes),
        "answer": shown["winners"][0]["sentence"] if shown["winners"] else "",
        "method": METHOD,
        "sections": _sections(shown),
        "content": shown,
        "data": {
            "protocols": [
                {"label": label, "colour": COLOURS[place % len(COLOURS)], "dash": DASHES[place % len(DASHES)]}
                for place, label in enumerate(collection.labels.values())
            ],
            "axes": shown["axes"],
            "series": grid.plain(),
            "curves": curves,
            "finals": finals,
            "spreads": charts.spreads(collection, grid),
            "start": start,
        },
    }


def _reproduction(collection: Collection, name: str, folder: Path) -> dict[str, Any]:
    written, resolved = reproduction.scenario(collection, folder)
    return {
        "file": f"{name}.yaml",
        "link": f"data:text/yaml;charset=utf-8,{quote(written)}",
        "written": written,
        "resolved": yaml_text(resolved),
        "commands": reproduction.commands(collection, name),
        "versions": reproduction.versions(collection),
        "runs": list(dict.fromkeys(run.partition("#")[0] for run in collection.runs)),
    }


def _sections(shown: dict[str, Any]) -> list[tuple[str, str]]:
    names = {"results": "Results", "sweep": "Sweep", "curves": "Curves", "agents": "Agents", "privacy": "Privacy"}
    names |= {"comparison": "Paired comparison", "figures": "Figures", "tuning": "Tuning", "runs": "Runs"}
    names |= {"run": "What was run", "reproduce": "Reproduce"}
    names = {"winners": "Who wins", **names}
    there = {"sweep": shown["axes"], "comparison": shown["comparison"], "tuning": shown["tuning"]}
    there |= {"winners": shown["winners"], "figures": shown["pictures"]}
    return [(key, text) for key, text in names.items() if there.get(key, True)]


def _start(collection: Collection, curves: dict[str, Any]) -> dict[str, Any]:
    """Return the charts' initial selection: the scenario's first figure that is a curve, else the task's metric."""
    metrics = [metric["id"] for metric in curves["metrics"]]
    axes = [axis["id"] for axis in curves["axes"]]
    measure = str((collection.manifests[0].get("task") or {}).get("metric", ""))
    start = {"metric": metrics[0] if metrics else "", "axis": axes[0], "logx": False, "logy": False, "agents": measure}
    for spec in [*(collection.index.get("figures") or []), {"y": measure, "x": "time"}]:
        try:
            metric = charts.metric_id(resolve(collection, str(spec.get("y")), spec.get("statistic")))
        except InputError:
            continue
        if metric in metrics and spec.get("x") in axes:
            log = str(spec.get("log") or "none")
            return start | {
                "metric": metric,
                "axis": spec["x"],
                "logx": log in ("x", "both"),
                "logy": log in ("y", "both"),
            }
    return start
