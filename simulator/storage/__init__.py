"""Results on disk: whole or absent, checked byte by byte, and known by what they were computed from.

::

    files.py       parquet tables, JSON and YAML that are durable, and the same for the same content
    run_folder.py  one run: its tables, and a manifest with the checksums of everything
    dataset.py     all runs of an experiment as one dataset
    sharing.py     equal parts of many manifests, kept once
    store.py       all runs of an experiment, safe from a second process: the entry for writing
    provenance.py  what decides a run's numbers
    user_code.py   a hash of a user's own code, which is part of that
"""
