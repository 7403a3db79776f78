"""The papers that are reproduced."""

from __future__ import annotations

from . import bellet2018, hu2019, liu2022, vanhaesebrouck2017, zhang2018
from .claims import Paper


def papers() -> tuple[Paper, ...]:
    """All of them, in the order of their pages."""
    return (bellet2018.PAPER, vanhaesebrouck2017.PAPER, zhang2018.PAPER, liu2022.PAPER, hu2019.PAPER)
