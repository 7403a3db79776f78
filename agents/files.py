"""Small CSV files of the user: every error names file and line."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from .errors import InputError


def reason_of(error: Exception) -> str:
    """Why a file could not be read, without its path, which the sentence around it names."""
    return getattr(error, "strerror", None) or str(error)


def read_rows(path: Path, columns: tuple[str, ...], field: tuple[str, ...]) -> list[tuple[str, dict[str, str]]]:
    """Rows of a small CSV file as (``path:line``, {column: text}); a wrong header or row is an `InputError`."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            header = [name.strip() for name in next(reader, [])]
            if sorted(header) != sorted(columns):
                raise InputError(f"{path}:1: the header {header} must be {', '.join(columns)}", field=field)
            rows = []
            for row in reader:
                line = f"{path}:{reader.line_num}"
                if not row:
                    continue
                if len(row) != len(columns):
                    raise InputError(f"{line}: has {len(row)} values; {len(columns)} are needed", field=field)
                rows.append((line, dict(zip(header, (cell.strip() for cell in row), strict=True))))
            return rows
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a CSV file ({reason_of(error)})", field=field) from error


def number(text: str, line: str, column: str, field: tuple[str, ...]) -> float:
    """A finite number from a CSV cell, or an `InputError` that names the line."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{line}: {column} {text!r} must be a finite number", field=field)
    return value
