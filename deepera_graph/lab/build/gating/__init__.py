"""What a built question must pass: each gate, and what it measures."""
