"""Studies of the BioASQ pipeline."""
