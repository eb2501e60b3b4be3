"""Judgements kept on disk, so that an answer that was paid for once is never bought again."""
