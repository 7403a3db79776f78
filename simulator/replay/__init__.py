"""``hushnet replay``: runs that are over, made again and shown as they went, in one page that a browser can scrub.

::

    chosen.py       which runs of a folder: by protocol, seed and swept values
    rerun.py        a run made again from its manifest, its trace compared with what was saved
    animation.py         what happened, as plain numbers for the page
    replay_page.py  the page: animation.html, animation.css and animation.js in one file that needs nothing else
"""

from .replay_page import write_replay

__all__ = ["write_replay"]
