"""Analysis of saved runs: collections, aggregates, targets and the summary."""
