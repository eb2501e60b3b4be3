# Run in the environment of CONTRIBUTING.md; `make check` is what to run before a commit.
PYTHON ?= python
BESIDE ?=
NOT_FAST = live or slow or tinyllm or browser or full

# Without compiled files, reading the tests takes longer than running them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: check test browser docs size trace

check:  ## format, lint, types, layers and the fast tests: under a minute on two cores
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	pytest -x -n auto -m "not ($(NOT_FAST))"

test:  ## the default suite
	pytest -n auto

browser:  ## pages in a real Chromium; needs the extra browser, and Chromium (CHROMIUM=path)
	pytest -m browser

docs:  ## the documentation as a site, in site/: a link that leads nowhere ends it
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

size:  ## files, lines, lengths, imports; BESIDE=folder adds a column
	$(PYTHON) benchmarks/house/size.py deepera_graph $(BESIDE)

trace:  ## files and functions that one rerank passes through
	$(PYTHON) benchmarks/house/trace.py
