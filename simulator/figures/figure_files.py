"""A figure's files: PNG, PDF and SVG, and the plotted numbers as CSV."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...agents.errors import InputError
from ...agents.suggestions import listed, require
from ..analysis.aggregate import NothingRecorded
from ..analysis.results import Collection, load_all, no_run
from ..language.figure_style import FigureStyle
from ..storage.files import Frame, put_file, writing
from ..storage.plain_text import csv_text
from .facets import plots
from .numbers import Spec
from .panels import draw
from .series_style import house_style
from .style import style_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST = 120
"""Characters of a file's name, apart from its ending."""

RESOLUTION = 300
"""Dots per inch of PNG files."""

GLYPH = r"Glyph (\d+) \(.*\) missing from font"
"""How matplotlib warns of a letter that a font lacks."""

OPTIONS: dict[str, dict[str, Any]] = {
    "png": {"metadata": {"Software": None}},
    "pdf": {"metadata": {"CreationDate": None}},
    "svg": {"metadata": {"Date": None}},
}
"""What makes files the same every time."""


@dataclass(frozen=True)
class Drawing:
    """A figure that was drawn."""

    name: str
    """Of its files."""
    figure: Figure
    style: FigureStyle
    table: Frame
    """Its numbers, for a CSV file."""


def named_figures(collection: Collection, only: Sequence[str] | None = None) -> list[tuple[str, Spec]]:
    """Name, as files are called, and specification of every figure of the scenario, or only of some.

    Raises `InputError` if there is no figure of a name.
    """
    found: list[tuple[str, Spec]] = []
    for number, spec in enumerate(collection.index.get("figures") or [], 1):
        name = spec.get("name") or f"{number}-{str(spec['y']).rpartition(':')[2]}-vs-{spec['x']}"
        found.append((re.sub(r"[^\w.-]+", "-", str(name)).strip(".-")[:LONGEST] or str(number), spec))
    names = [name for name, _ in found]
    if only is not None and not only:
        raise InputError(f"give at least one name of a figure; admissible: {listed(names)}")
    for name in only or ():
        require(name, names, f"there is no figure {name!r}")
    return [(name, spec) for name, spec in found if only is None or name in only]


def drawings(
    collection: Collection, *, only: Sequence[str] | None = None, style: FigureStyle | None = None
) -> list[Drawing]:
    """Draw all or some figures of a scenario, by name; a style stands above those of scenario and figures."""
    return [drawing(collection, spec, name, style) for name, spec in named_figures(collection, only)]


def drawing(collection: Collection, spec: Spec, name: str, style: FigureStyle | None = None) -> Drawing:
    """Draw one figure in its style, or in what stands above that."""
    own = style_of(collection, spec)
    merged = own if style is None else style.over(own)
    spec = {**spec, "style": merged}
    numbers = plots(collection, spec)
    tables = [one.table().assign(panel=one.panel) if len(numbers) > 1 else one.table() for one in numbers]
    with house_style(merged), _missing_glyphs(name):
        return Drawing(name, draw(collection, spec, numbers), merged, pd.concat(tables, ignore_index=True))


@contextmanager
def _missing_glyphs(name: str) -> Iterator[None]:
    """Draw a figure, and warn once of the letters that its fonts lack, where matplotlib warns of each."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    missing = dict.fromkeys(chr(int(match[1])) for each in found if (match := re.match(GLYPH, str(each.message))))
    for each in found:
        if not re.match(GLYPH, str(each.message)):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    if missing:
        letters = "".join(letter for letter in missing if letter.isprintable())
        said = f"its fonts have no letters {letters[:10]}, so boxes stand there; set style.font to one that has them"
        warnings.warn(f"figure {name}: {said}", stacklevel=3)


def redraw(
    results: Path,
    *,
    out: Path | None = None,
    collection: Collection | None = None,
    only: Sequence[str] | None = None,
    style: FigureStyle | None = None,
) -> list[Path]:
    """Draw the figures, all or some by name, of the latest experiment in ``results/<scenario>``, from its files.

    They go into its folder ``figures``, or elsewhere; a style stands above those of scenario and figures. Whoever has
    read the results already gives the collection. Returns the paths of PNG, PDF and SVG, as far as they are asked for,
    and CSV of every figure, in order.

    Raises `InputError` if the folder holds no results, or a file is damaged. If a figure cannot be drawn, after all
    others have been; `NothingRecorded` if all that is wrong is that runs recorded nothing for it.
    """
    results = Path(results)
    if not (results / "index.json").exists():
        if not results.is_dir():
            raise no_run(results)
        raise InputError(f"{results}: holds no index.json; give a folder results/<scenario> of hushnet run")
    collection = load_all(results) if collection is None else collection
    folder = Path(out) if out is not None else results / "figures"
    written, refused = draw_all(collection, folder, only=only, style=style, within=None if out else results)
    if refused:
        kinds = [type(error) for error in refused if not isinstance(error, NothingRecorded)] or [NothingRecorded]
        raise kinds[0]("\n".join(map(str, refused)), field=("figures",))
    return written


def draw_all(
    collection: Collection,
    folder: Path,
    *,
    only: Sequence[str] | None = None,
    style: FigureStyle | None = None,
    within: Path | None = None,
) -> tuple[list[Path], list[InputError]]:
    """Draw what can be drawn, into a folder which may be one within results.

    Returns the files, and for every other figure an error whose sentence says why not.
    """
    written: list[Path] = []
    refused: list[InputError] = []
    for name, spec in named_figures(collection, only):
        try:
            written += save_drawing(drawing(collection, spec, name, style), folder, within=within)
        except InputError as error:  # the other figures are worth having
            said = f"figures: {name}: {str(error).removeprefix('figures: ')}"
            refused.append(type(error)(said, field=("figures",)))
    return written, refused


def save_figure(collection: Collection, spec: Spec, stem: Path, style: FigureStyle | None = None) -> list[Path]:
    """Write one figure as ``<stem>.png``, ``.pdf``, ``.svg`` and ``.csv``, and return the paths."""
    return save_drawing(drawing(collection, spec, stem.name, style), stem.parent)


def save_drawing(drawn: Drawing, folder: Path, *, within: Path | None = None) -> list[Path]:
    """Write a figure's files into a folder, which may be one `within` results, and return their paths."""
    contents = [(str(name), picture(drawn, name)) for name in drawn.style.files]
    contents.append(("csv", csv_text(drawn.table).encode()))
    paths = []
    with writing(folder):
        for suffix, content in contents:
            path = folder / f"{drawn.name}.{suffix}"
            put_file(content, path, within=within)
            paths.append(path)
    return paths


def picture(drawn: Drawing, format: str) -> bytes:
    """A figure's file, png, pdf or svg: the same bytes every time."""
    content, dots = BytesIO(), drawn.style.resolution or RESOLUTION
    with house_style(drawn.style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", GLYPH)  # of which `drawing` has warned
        drawn.figure.savefig(content, format=format, dpi=dots, **OPTIONS[format])
    return content.getvalue()


def few_colours(png: bytes) -> bytes:
    """The same picture in at most 128 colours, which is what lines and letters need: a third of the size."""
    from PIL import Image

    content = BytesIO()
    with Image.open(BytesIO(png)) as whole:
        dots = whole.info.get("dpi", (RESOLUTION, RESOLUTION))
        few = whole.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        few.save(content, format="png", optimize=True, dpi=dots)
    return content.getvalue()
