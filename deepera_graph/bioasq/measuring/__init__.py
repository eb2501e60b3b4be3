"""Measures of BioASQ, the official quirks among them, and checks of a submission."""
