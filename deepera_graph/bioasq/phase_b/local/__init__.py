"""Answers of phase B without a chat model."""
