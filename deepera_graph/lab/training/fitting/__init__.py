"""What is fitted: reader, scorer, ranking, direction, and answers of BioASQ."""
