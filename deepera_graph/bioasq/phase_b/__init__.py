"""Phase B of BioASQ: exact and ideal answers from snippets."""
