"""The benchmark: data sets with look-alikes, metrics, rankers to compare, and the table they make.

Install the extra ``bench``. Start with `deepera_graph.bench.run.run`:

``run([FirstStage(), BM25()], [open_dataset(path)]).markdown()``
"""
