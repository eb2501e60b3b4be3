"""A table of studies: a row a study, a cell only with the words that it is taken from."""
