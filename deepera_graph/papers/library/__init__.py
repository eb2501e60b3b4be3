"""The file of a base of papers: written, searched by words and vectors, checked."""
