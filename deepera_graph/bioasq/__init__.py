"""Biomedical questions as in BioASQ task B: PubMed, ranked documents, snippets, typed answers."""
