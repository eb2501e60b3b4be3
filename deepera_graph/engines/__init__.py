"""Engines: what does many tasks at once, here or in the workers of a Ray cluster.

An engine is handed tasks one by one and gives a future for each; whoever hands them in reads the
futures in order and looks only so far ahead. What is done with a task does not depend on where.
"""
