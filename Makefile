PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demonstrable
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
# One more worker than cores, since some tests wait for programs that poll; threads of linear algebra
# would only get in each other's way. Compiled modules are kept, also where the environment says
# otherwise: each worker and each program that a test starts would compile them again. PROFILE is
# Hypothesis's: the examples of properties are the same in every run, or those of a new search.
PROFILE := fixed
PYTEST = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest \
  -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)') --dist worksteal --max-worker-restart 0 -m 'not thorough' \
  --hypothesis-profile $(PROFILE)
# What `make test`, `make test-all-pythons` and `make coverage` run: all tests, or TESTS=tests/metrics.
TESTS :=

.PHONY: setup demo test test-thorough test-all-pythons coverage check docs bench lock release hooks clean

setup: $(STAMP)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "tacit needs Python 3.11 to 3.13; run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

# The versions in requirements.txt, whose files must have the hashes that stand there; then both
# distributions of this folder, built by the locked build backend.
$(STAMP): requirements.txt pyproject.toml studies/pyproject.toml | $(BIN)/python
	$(PIP) install --no-deps --require-hashes -r requirements.txt
	$(PIP) install --no-deps --no-build-isolation -e . -e studies
	$(PIP) check
	touch $@

# What the demonstration needs and no more, in the same environment and with the same versions.
$(DEMO): requirements-demo.txt pyproject.toml | $(BIN)/python
	$(PIP) install --no-deps --require-hashes -r requirements-demo.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

demo: $(DEMO)
	$(BIN)/tacit demo

test: setup
	$(PYTEST) $(TESTS)

test-thorough: setup
	$(BIN)/python -m pytest -m thorough

# With every Python from 3.11 to 3.13 that is installed, each in an environment below .venvs/.
test-all-pythons:
	.ci/test-pythons $(TESTS)

# As `make test`, with the branches that were taken; fails below the bound in pyproject.toml.
coverage: setup
	$(PYTEST) --cov --cov-report=term:skip-covered $(TESTS)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(MKDOCS) --site-dir build/site

# The site, into site/; the page of the command line is written anew.
docs: setup
	$(MKDOCS)

bench: setup
	$(BIN)/python -m benchmarks

# Writes requirements.txt and, with the same versions, requirements-demo.txt from pyproject.toml, for
# Python 3.11 to 3.13. It keeps the versions that stand there and still fit; `make lock
# UPGRADE=--upgrade` takes the newest.
UPGRADE :=
COMPILE = .venvs/lock/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-annotate --no-emit-package tacit --custom-compile-command 'make lock' --quiet
lock:
	$(PYTHON) -m venv .venvs/lock
	.venvs/lock/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	$(COMPILE) --extra dev $(UPGRADE) --output-file requirements.txt
	$(COMPILE) --extra demo --extra build --constraint requirements.txt --output-file requirements-demo.txt

# Builds wheel and sdist of both distributions into dist/, and tests the wheels elsewhere.
release: setup
	.ci/test-wheels

# Checks before each commit, from .pre-commit-config.yaml.
hooks: setup
	$(BIN)/pre-commit install

clean:
	rm -rf $(VENV) .venvs .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis \
	  .coverage .coverage.* build dist out site
