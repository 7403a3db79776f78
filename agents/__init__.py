"""What a peer is: its data and task, its loss and objective, its inbox and when it is up."""
