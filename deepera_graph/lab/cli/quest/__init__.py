"""The commands of `deepera bench quest`: a benchmark of searches for papers, made and audited."""
