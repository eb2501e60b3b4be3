"""The audit of a benchmark: people label pairs of question and paper, and the judge is compared."""
