"""What the judge learns from: files and pairs made into labelled groups."""
