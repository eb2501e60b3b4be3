"""Calibration: what the scores of one judge are worth, measured on labelled passages.

Needs scikit-learn (the extra ``calibrate``) to fit; what comes out, a `Curve`, does without it.
"""
