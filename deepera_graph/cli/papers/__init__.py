"""`deepera papers`, and `deepera bench papers`."""
