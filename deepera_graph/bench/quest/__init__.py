"""Making a benchmark of searches for papers: topics in, questions with graded papers out."""
