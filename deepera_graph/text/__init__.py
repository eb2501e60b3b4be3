"""Text: sentences, words and terms."""
