"""What tests of compiled code share."""

from __future__ import annotations

import pytest
from hushnet.agents.compilation import code_store


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty store."""
    monkeypatch.setenv("HUSHNET_CACHE_DIR", str(tmp_path / "code"))
    code_store._store_at.cache_clear()
    yield tmp_path / "code"
    code_store._store_at.cache_clear()
