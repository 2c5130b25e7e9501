# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PEERS  := $(VENV)/.peers

PYTEST := $(BIN)/python -m pytest
# Two workers, each with a Spark of its own; one that has nothing left takes tests from the other.
WORKERS ?= 2
SPREAD  := --numprocesses $(WORKERS) --dist worksteal
SPARK   := tests/spark tests/concurrency tests/notebooks
# Publish, drop, clean up, backfill: these run with conflicts instead of without.
CONFLICTED := $(addprefix tests/spark/,segments/test_publish.py segments/test_drop.py maintenance/test_cleanup.py backfill/test_backfill.py)

# Workers must run the interpreter that has the dependencies, whatever `python3` is on the PATH.
export PYSPARK_PYTHON := $(abspath $(BIN)/python)
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
# The settings come from conf/, not from a Spark that happens to be installed on the machine.
unexport SPARK_HOME
unexport SPARK_CONF_DIR

.PHONY: help demo test lint unit browser spark conflicts connect stress bench benchsample benchshort benchlong docs house clean

help:  ## show what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(READY): setup.cfg pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed: set PYTHON=…"; exit 1; }
	@command -v java >/dev/null || { echo "Java 17 is needed on the PATH"; exit 1; }
	@echo "Creating $(VENV) and installing pyspark, delta-spark and the tools (about 500 MB) …"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[spark,connect,shell,dev]'
	@touch $@

# What only the benchmarks need: other stores to compare with, and what draws the plot.
$(PEERS): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@

demo: $(READY)  ## build a small local catalog, explain every step, and leave it to try
	$(BIN)/strata demo

lint: $(READY)  ## ruff, mypy and the order of packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: $(READY)  ## the tests that need no Spark
	$(PYTEST) $(SPREAD) tests/unit -m 'not stress'

browser: $(READY)  ## the report in headless Chromium, where that is installed
	$(PYTEST) tests/browser

spark: $(READY)  ## the tests on a local Spark: every verb, every door, races, notebooks
	$(PYTEST) $(SPREAD) $(SPARK) $(CONFLICTED:%=--ignore=%) -m 'not stress'

conflicts: $(READY)  ## publish, drop, clean-up and backfill, where one commit in ten meets a conflict
	STRATA_TEST_CONFLICTS=10 $(PYTEST) $(SPREAD) $(CONFLICTED) -m 'not stress'

# One worker: the server of a Connect session listens on a port that is the same for all.
connect: $(READY)  ## a representative part of them on Spark Connect
	STRATA_TEST_CONNECT=1 $(PYTEST) tests/spark -m 'connect and not stress'

benchsample: $(READY)  ## some benchmarks once, tiny, to prove that they run
	$(BIN)/python -m tests.benchmarks --scale short --only one lookups

benchshort: $(PEERS)  ## every benchmark once, tiny, to prove that it runs
	$(BIN)/python -m tests.benchmarks --scale short

test: lint unit browser spark conflicts connect benchsample  ## everything that must pass before a change lands

stress: $(READY)  ## long races and kills, and the whole Spark suite with conflicts and on Connect
	$(PYTEST) tests/unit -m stress --timeout 3600
	STRATA_TEST_DEFAULTS=1 $(PYTEST) tests/concurrency tests/spark -m stress --timeout 3600
	STRATA_TEST_CONFLICTS=10 STRATA_TEST_SEED=$$(date +%s) $(PYTEST) $(SPREAD) $(SPARK) --timeout 3600
	STRATA_TEST_DEFAULTS=1 STRATA_TEST_CONNECT=1 $(PYTEST) tests/spark --timeout 3600

bench: $(PEERS)  ## the figures: side by side, with goals and verdicts (about 45 minutes)
	$(BIN)/python -m tests.benchmarks

benchlong: $(PEERS)  ## the same with more rounds, up to 10 million segments
	$(BIN)/python -m tests.benchmarks --scale long

docs: $(READY)  ## write what is generated in docs/: the column dictionary, the type changes, the reference
	$(BIN)/python -m catalog.sql.dictionary docs/sql.md
	$(BIN)/python docs/type_changes.py
	$(BIN)/python docs/reference.py

house: $(READY)  ## figures of the layout, now and before it was made anew
	$(BIN)/python -m tests.house

clean:  ## remove the virtual environment and what was built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
