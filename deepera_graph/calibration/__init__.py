"""Sets with labels, and thresholds calibrated on them, with their statistics."""
