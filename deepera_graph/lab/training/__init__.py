"""Training of the local evidence judge: data in, weights out, and how good they are.

Nothing here is needed to judge. `deepera-lab judge` is the command; the extra ``train`` brings the
packages.
"""
