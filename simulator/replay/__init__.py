"""``hushnet replay``: runs that are over, made again and shown as they went, in one page that a browser can scrub."""

from .replay_page import write_replay

__all__ = ["write_replay"]
