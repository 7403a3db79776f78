"""What a peer is: its data, loss, inbox, availability and the SimPy process that its clock wakes."""
