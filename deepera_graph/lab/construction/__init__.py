"""What makes data sets: one shell, with two recipes, `lab.build` and `lab.quest`."""
