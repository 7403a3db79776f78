"""The state of a run as arrays with named columns."""
