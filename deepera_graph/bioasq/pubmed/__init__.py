"""PubMed: its files read, made a corpus and a collection."""
