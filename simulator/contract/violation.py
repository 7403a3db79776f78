"""What is raised where a protocol breaks its contract."""


class ContractViolation(AssertionError):
    """A protocol broke the contract; the message says how."""
