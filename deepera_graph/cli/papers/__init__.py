"""`deepera papers`: a base of papers, and searching it."""
