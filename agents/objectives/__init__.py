"""What agents minimise together: global objectives and their exact minimisers."""
