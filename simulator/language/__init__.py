"""The scenario language: from YAML to a checked `Scenario`, or one sentence why not.

::

    yaml_source  text to plain data, with the line of every part
    transforms   parts of the data that are set: by ``quick``, ``--set``, a place of the sweep, a tuned value
    checking     the data to a `Scenario`: ``like`` resolved (inheritance), every part read by its model (scenario and
                 what it is made of; a protocol by its own), and whether the parts fit (fitting)
    points       the same for the points of the sweep and the trials of the tuning, by what differs
    loading      all of this for a file, a name or a mapping

What is wrong becomes a sentence in field_errors.
"""
