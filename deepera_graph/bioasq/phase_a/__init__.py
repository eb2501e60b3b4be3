"""Phase A of BioASQ: documents and snippets for a question."""
