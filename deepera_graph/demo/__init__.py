"""The built-in demonstration: an invented corpus, its questions, and their labels."""
