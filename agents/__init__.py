"""Parts of a peer: its data and task, its loss and objective, its inbox, and the times at which it is up."""
