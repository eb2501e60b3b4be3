"""Reranking of whole files: one question a line in, one line out, in order, in constant memory."""
