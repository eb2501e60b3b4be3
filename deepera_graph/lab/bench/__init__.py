"""The benchmark: rankers over data sets, their cached rankings, tables, figures and page."""
