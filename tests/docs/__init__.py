"""The documentation site: complete, consistent, and true where it can be executed."""
