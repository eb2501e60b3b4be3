"""Checking a manuscript: whether what it cites says what it is cited for."""
