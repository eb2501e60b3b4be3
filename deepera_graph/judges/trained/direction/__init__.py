"""Which way a passage points on a question that yes or no answers, read from its wording.

Words are read as signs: up and down, good and bad, links, negations, findings of no difference,
significance, comparisons, contrasts and hedges. The sentences that match the question best become
sequences of such signs, relative to what the question asks ("same" is the way it asks about), and
a multinomial logistic regression weighs what stands in them. All weights have names.
"""
