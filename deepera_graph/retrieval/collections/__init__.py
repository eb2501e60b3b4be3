"""Collections of passages in Qdrant."""
