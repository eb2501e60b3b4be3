"""What the commands of `deepera bench` do."""
