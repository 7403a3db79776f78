"""One run's finished record: setting, protocol, state, ledger and traffic; it knows no engine."""
