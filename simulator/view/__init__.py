"""``hushnet view``: a local, read-only page about many experiments, live while they go on."""

from .page_server import serve

__all__ = ["serve"]
