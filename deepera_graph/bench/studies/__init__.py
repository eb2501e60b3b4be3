"""The experiments: one file each, all with the shape of `experiments.experiment`."""
