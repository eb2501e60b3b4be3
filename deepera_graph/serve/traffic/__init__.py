"""What every request passes: its limits, its turn, its end, its count."""
