"""The documentation site: written pages, and reference pages that are generated from the code that they are about.

``python -m hushnet.simulator.docs FOLDER`` builds it, offline. It needs the extra ``docs``
and a clone of the repository.
"""
