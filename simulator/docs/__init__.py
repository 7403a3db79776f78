"""The documentation site: written pages, and reference pages that are generated from the code that they are about.

::

    pages/        what is written: background, guides, questions
    markdown.py   tables, headings and links of pages that are generated
    reference.py  fields of scenarios, models of the network, tasks, metrics, figures, commands, errors
    protocols.py  a page for each protocol: equations, messages, what is kept, where it runs
    gallery.py    each shipped figure with the scenario that makes it
    interface.py  what may be imported, from docstrings
    plain.py      bars in docstrings, for Sphinx
    site.py       all pages, and Sphinx over them

``python -m hushnet.simulator.docs FOLDER`` builds it, offline. It needs the extra ``docs``
and a clone of the repository.
"""
