"""A question about tea, and passages: `support.scripted.TEA_SCORES` has their scores."""

QUESTION = "Does tea drinking lower fasting glucose?"
TEA = [
    ("debate", "The effects of tea on glucose are debated. More work is needed."),
    ("trial", "Green tea lowered fasting glucose by 0.4 mmol/L in 212 adults. It was blind."),
    ("kelp", "Kelp forests recovered after otters returned. Urchins became rare."),
    ("cohort", "In tea drinkers glucose fell over six years. The cohort was large."),
    ("meal", "Black tea gave a smaller rise in glucose after a meal. Sugar was added."),
    ("null", "There was no difference in fasting glucose with tea. The dose was low."),
]
