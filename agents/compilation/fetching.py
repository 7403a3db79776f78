"""Asking the processor for memory before it is needed, in compiled code; declared without numba."""

from __future__ import annotations

from typing import Any

from .deferred import Deferred


def _made() -> Any:
    from .fetching_forms import prefetch

    return prefetch


prefetch: Any = Deferred(_made)
"""`hushnet.agents.compilation.fetching_forms.prefetch`."""
