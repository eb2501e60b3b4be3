"""Text: sentences, words, terms, quotes, and JSON lines."""
