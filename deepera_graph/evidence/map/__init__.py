"""The studies of a table as figures: a harvest plot of directions, and forest plots of effects."""
