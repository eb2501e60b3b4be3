"""Questions whose evidence lies in several passages that no single search brings together."""
