"""What tests of compiled code share."""

from __future__ import annotations

import pytest
from hushnet.agents.compilation import announcements, code_store


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty store, in a process that has said nothing of compiling."""
    monkeypatch.setattr(announcements, "_said", set())
    monkeypatch.setenv("HUSHNET_CACHE_DIR", str(tmp_path / "code"))
    code_store._store_at.cache_clear()
    yield tmp_path / "code"
    code_store._store_at.cache_clear()
