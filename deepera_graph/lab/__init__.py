"""For those who measure and train: benchmarks, studies, data sets made, judges trained."""
