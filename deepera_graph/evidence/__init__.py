"""What scientists do with evidence: check citations, tabulate studies, write reports."""
