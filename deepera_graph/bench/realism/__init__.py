"""Whether look-alikes can be told from the other passages of their pools by style alone."""
