"""A figure's files: PNG and PDF, and the plotted numbers as CSV."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import pandas as pd

from ...agents.errors import InputError
from ..look import house_style
from ..results import Collection, load_all
from ..storage.files import put_file, writing
from .facets import plots
from .numbers import Spec
from .sheet import draw

LONGEST = 120
"""Characters of a file's name, apart from its ending."""


def redraw(results: Path, *, out: Path | None = None, collection: Collection | None = None) -> list[Path]:
    """Draw every figure of the latest experiment from its files.

    Parameters
    ----------
    results : Path
        ``results/<scenario>``, with its ``index.json``.
    out : Path, optional
        Where the figures go; ``results/<scenario>/figures`` by default.
    collection : Collection, optional
        What `load_all` gives for the folder, from whoever has read it already.

    Returns
    -------
    list of Path
        PNG, PDF and CSV of every figure, in order.

    Raises
    ------
    InputError
        If the folder holds no results, a file is damaged, or a specification asks for what was not recorded.
    """
    results = Path(results)
    if not (results / "index.json").exists():
        raise InputError(f"{results}: holds no index.json; give a folder results/<scenario> of hushnet run")
    collection = load_all(results) if collection is None else collection
    folder = Path(out) if out is not None else results / "figures"
    written: list[Path] = []
    for number, spec in enumerate(collection.index.get("figures") or [], 1):
        name = spec.get("name") or f"{number}-{spec['y']}-vs-{spec['x']}"
        stem = re.sub(r"[^\w.-]+", "-", str(name)).strip(".-")[:LONGEST] or str(number)
        written += save_figure(collection, spec, folder / stem)
    return written


def save_figure(collection: Collection, spec: Spec, stem: Path) -> list[Path]:
    """Write one figure as ``<stem>.png``, ``.pdf`` and ``.csv``, and return the three paths."""
    numbers = plots(collection, spec)
    png, pdf, csv = (stem.with_name(f"{stem.name}.{suffix}") for suffix in ("png", "pdf", "csv"))
    drawn, printed = BytesIO(), BytesIO()
    with house_style():
        figure = draw(collection, spec, numbers)
        figure.savefig(drawn, format="png", dpi=300, metadata={"Software": None})
        figure.savefig(printed, format="pdf", metadata={"CreationDate": None})
    tables = [plot.table().assign(panel=plot.panel) if len(numbers) > 1 else plot.table() for plot in numbers]
    text = pd.concat(tables, ignore_index=True).to_csv(index=False, lineterminator="\n")
    with writing(stem.parent):
        for path, content in ((png, drawn.getvalue()), (pdf, printed.getvalue()), (csv, text.encode())):
            put_file(content, path)
    return [png, pdf, csv]
