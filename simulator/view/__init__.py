"""``hushnet view``: a local, read-only page about many experiments, live while they go on.

::

    followed.py      the runs of one experiment, read as they come
    page_server.py   who may ask, and what is answered
    view.html, view.css, view.js   the page
"""

from .page_server import serve

__all__ = ["serve"]
