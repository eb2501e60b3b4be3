"""`deepera-lab bench quest`: make a benchmark of searches for papers, and audit it."""
