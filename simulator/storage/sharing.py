"""Equal parts of many documents kept once: the manifests of a sweep say nearly the same, thousands of times."""

from __future__ import annotations

from typing import Any


class Shared:
    """Keeps equal parts of documents once, as long as it is there itself.

    >>> shared = Shared()
    >>> first, second = (shared.of({"seed": seed, "task": {"agents": 3, "rate": 1.0}}) for seed in (0, 1))
    >>> first["task"] is second["task"], second
    (True, {'seed': 1, 'task': {'agents': 3, 'rate': 1.0}})
    """

    def __init__(self) -> None:
        self._kept: dict[Any, Any] = {}

    def of(self, document: dict[str, Any]) -> dict[str, Any]:
        """An equal document whose parts are the same objects as equal parts of earlier ones: to be read, not changed.

        It is of mappings with texts as keys, lists, texts, numbers, truth values and None, as JSON has them.
        """
        return {self._part(key): self._part(item) for key, item in document.items()}

    def _part(self, value: Any) -> Any:
        if isinstance(value, dict):
            parts = self.of(value)
            return self._kept.setdefault((dict, *map(id, parts), *map(id, parts.values())), parts)
        if isinstance(value, list):
            items = [self._part(item) for item in value]
            return self._kept.setdefault((list, *map(id, items)), items)
        # 1, 1.0 and True are equal, as are 0.0 and -0.0, and yet not the same.
        return self._kept.setdefault((type(value), repr(value) if isinstance(value, float) else value), value)
