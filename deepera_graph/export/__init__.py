"""Results for other programs and for reading: tables, references, and a page."""
