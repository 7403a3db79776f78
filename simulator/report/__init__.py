"""``hushnet report``: one self-contained HTML page about an experiment, made from its files alone."""
