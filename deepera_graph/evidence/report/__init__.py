"""A report on a question: several paragraphs, of which every sentence was checked."""
