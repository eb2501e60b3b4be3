"""One self-contained HTML page of a benchmark: tables, plots and the worst questions."""
