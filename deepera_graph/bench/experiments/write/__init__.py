"""What an experiment found, written as Markdown, CSV, LaTeX and figures."""
