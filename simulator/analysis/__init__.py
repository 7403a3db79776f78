"""What saved runs come to: collections, aggregates, targets and the summary."""
