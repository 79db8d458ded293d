# make run    train a private federated model on the bundled MNIST
# make test   lint, types, import rules and tests
# make mutants   put faults into the deployed agent, one at a time: a test must find each
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml setup.py $(wildcard src/tacit/engine/*.[ch])

.PHONY: run test lint mutants bench clean

run: .venv/.run
	$(BIN)/tacit train

test: lint
	$(BIN)/python -m pytest

lint: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

mutants: .venv/.dev
	$(BIN)/python -m tests.mutants

bench: .venv/.dev
	$(BIN)/python -m benchmarks

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.run: $(SOURCES) | .venv/bin/python
	$(BIN)/pip install --quiet --editable .
	@touch $@

.venv/.dev: $(SOURCES) | .venv/bin/python
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@ .venv/.run

clean:
	rm -rf .venv build src/*.egg-info
