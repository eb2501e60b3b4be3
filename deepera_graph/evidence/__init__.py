"""What scientists do with evidence: check the citations of a manuscript, tabulate studies."""
