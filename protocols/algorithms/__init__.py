"""The protocols that ship with hushnet, one file each, and the noise and starts that they share."""
