"""Results on disk: whole or absent, checked byte by byte, and known by what they were computed from.

The entry for writing is store.py, all runs of an experiment.
"""
