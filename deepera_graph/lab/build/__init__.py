"""Making benchmark questions: documents in, questions with look-alikes out."""
