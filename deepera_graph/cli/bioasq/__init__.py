"""`deepera bioasq`: biomedical questions as in BioASQ."""
