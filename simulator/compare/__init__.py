"""Protocols compared run by run, from the files of one results folder or of several."""

from .comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
