"""Answers from what a ranker puts in front, and what they are worth.

Start with `deepera_graph.bench.answers.study.answer_scores`.
"""
