"""Steps compiled by hand, with positional arrays: the measure for what is compiled from texts."""
