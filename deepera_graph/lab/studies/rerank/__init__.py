"""Studies of rerankers, each of one subject."""
