PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: setup demo test test-thorough check docs bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "tacit needs Python 3.11 to 3.13; run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/tacit demo

# One more worker than cores, since some tests wait for programs that poll; threads of linear algebra
# would only get in each other's way.
test: setup
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest \
	  -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)') --dist worksteal -m 'not thorough'

test-thorough: setup
	$(BIN)/python -m pytest -m thorough

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MKDOCS) --site-dir build/site

# The site, into site/; the page of the command line is written anew.
docs: setup
	$(BIN)/python docs/generating/cli_page.py
	$(MKDOCS)

bench: setup
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist out site
