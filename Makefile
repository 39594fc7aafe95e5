# One command for each thing a contributor or CI does. Needs Python 3.11+, Rust, JDK 17, Maven, make and git; everything
# else goes into .venv. A target that was interrupted is picked up where it stopped: what is done is marked by stamp files.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VENV35 := .venv-spark35
BIN35 := $(VENV35)/bin
PYTEST := $(BIN)/python -m pytest

# Spark, Maven and JMH find Java by JAVA_HOME or on the PATH; the two should not disagree.
ifndef JAVA_HOME
  JAVA_ON_PATH := $(shell command -v java)
  ifneq ($(JAVA_ON_PATH),)
    export JAVA_HOME := $(patsubst %/bin/java,%,$(shell readlink -f $(JAVA_ON_PATH)))
  endif
endif
# Workers must run this environment's Python, and Spark must not look for an outer network interface.
export PYSPARK_PYTHON := $(abspath $(BIN)/python)
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
export SPARK_LOCAL_IP := 127.0.0.1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Benchmarks of one core run on one core: the last one, where there is taskset.
PIN ?= $(shell command -v taskset >/dev/null 2>&1 && echo taskset -c $$(( $$(nproc) - 1 )))
LONG_EXAMPLES ?= 2000
FUZZ_EXAMPLES ?= 20000
RECORD := benches/record
BENCH_ROWS ?= 16000

WHEEL_SOURCES := $(shell find src python -type f \( -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name py.typed \) 2>/dev/null) \
  Cargo.toml Cargo.lock pyproject.toml README.md LICENSE
JVM_SOURCES := benches/jvm/pom.xml $(shell find benches/jvm/src -name '*.java')
PYTHON_CODE := python tests benches docs $(wildcard examples)

##@ Use

.PHONY: help
help: ## Say what each target does
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo

.PHONY: setup
setup: $(VENV)/.wheel ## Create .venv, install everything into it, build the wheel and install that
	@echo "ready: $(BIN)/letterhead"

.PHONY: demo
demo: setup ## Run the demonstration on a real topic and a real state store (tests/samples)
	$(BIN)/letterhead demo --data tests/samples

##@ Develop

.PHONY: dev
dev: $(VENV)/.deps ## Install the package editable instead (Python sources live, Rust built once)
	rm -f $(VENV)/.wheel  # the next `make test` installs the wheel again
	$(BIN)/maturin develop --release

.PHONY: lint
lint: $(VENV)/.wheel ## Check format, lints and types of Rust and Python
	cargo fmt --check
	cargo clippy --all-targets --no-default-features -- -D warnings
	cargo clippy --all-targets --features python -- -D warnings
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/mypy python/letterhead

.PHONY: format
format: $(VENV)/.deps ## Rewrite the sources in the house format
	cargo fmt
	$(BIN)/ruff check --fix $(PYTHON_CODE)
	$(BIN)/ruff format $(PYTHON_CODE)

.PHONY: docs
docs: $(VENV)/.docs ## Build the documentation into site/
	$(BIN)/mkdocs build --strict --quiet --site-dir site
	@echo "site/index.html"

.PHONY: clean
clean: ## Remove everything that was built, .venv too
	rm -rf $(VENV) $(VENV35) target dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

##@ Test

.PHONY: test
test: test-rust bench-quick test-doc test-python test-spark ## Run the first tier of the tests (25 minutes at most)

.PHONY: test-all
test-all: test test-full ## Run every test there is (60 minutes at most)

.PHONY: test-rust
test-rust: ## Test the Rust core, with no Python in it
	cargo test --no-default-features

.PHONY: test-python
test-python: $(VENV)/.wheel ## Test the Python package, without Spark
	$(PYTEST) tests/python -m "not full"

.PHONY: test-doc
test-doc: $(VENV)/.wheel ## Run the examples in docstrings and in the documentation (test-spark runs those of Spark)
	$(PYTEST) --doctest-modules --pyargs letterhead --ignore-glob='*/letterhead/spark/*'
	$(PYTEST) --doctest-glob='*.md' docs

.PHONY: test-spark
test-spark: $(VENV)/.wheel ## Test with Spark 4.2
	$(PYTEST) tests/spark -m "not full"

.PHONY: test-full
test-full: test-long test-spark35 ## Run what test-all adds to test

# What is marked as long, and every property with more examples than the first tier tries.
.PHONY: test-long
test-long: $(VENV)/.wheel
	PROPTEST_CASES=$(LONG_EXAMPLES)0 cargo test --no-default-features  # Rust's are ten times as fast
	LETTERHEAD_EXAMPLES=$(LONG_EXAMPLES) $(PYTEST) tests/python -m "full or hypothesis" --timeout 1800
	LETTERHEAD_EXAMPLES=$(LONG_EXAMPLES) $(PYTEST) tests/spark -m "full or hypothesis"

.PHONY: test-spark35
test-spark35: $(VENV35)/.wheel ## Smoke-test the transforms on Spark 3.5, in an environment of its own
	PYSPARK_PYTHON=$(abspath $(BIN35)/python) PYSPARK_DRIVER_PYTHON=$(abspath $(BIN35)/python) \
	  $(BIN35)/python -m pytest tests/spark -m spark35

.PHONY: fuzz
fuzz: $(VENV)/.wheel ## Compare Rust with plain Python on many more random inputs (no coverage-guided fuzzer yet)
	@echo "longer runs of the properties, Rust against plain Python; a coverage-guided fuzzer is not built yet"
	PROPTEST_CASES=$(FUZZ_EXAMPLES)0 cargo test --no-default-features
	LETTERHEAD_EXAMPLES=$(FUZZ_EXAMPLES) $(PYTEST) tests/python -m hypothesis --timeout 7200

##@ Measure

.PHONY: bench
bench: bench-rust bench-python bench-jvm bench-spark ## Run all benchmarks, print one table, keep the raw results under benches/record
	$(BIN)/python -m benches.run

.PHONY: bench-table
bench-table: $(VENV)/.wheel ## Print the table of the results that are there
	$(BIN)/python -m benches.run

.PHONY: bench-rust
bench-rust:
	mkdir -p $(RECORD)
	$(PIN) cargo bench --no-default-features --bench '*' | tee $(RECORD)/rust.txt

.PHONY: bench-python
bench-python: $(VENV)/.wheel
	mkdir -p $(RECORD)
	$(PIN) $(PYTEST) -c benches/python/pytest.ini benches/python --benchmark-json=$(RECORD)/python.json

.PHONY: bench-jvm
bench-jvm: target/jvm/.built $(VENV)/.wheel
	mkdir -p $(RECORD)
	answers=$$($(BIN)/python -m benches.jvm.export $(BENCH_ROWS) target/jvm/blocks.bin); \
	  $(PIN) java -cp 'target/jvm/classes:target/jvm/lib/*' \
	    org.apache.kafka.streams.state.internals.HeadersBenchmark full $$answers $(RECORD)/jvm.json

.PHONY: bench-spark
bench-spark: $(VENV)/.wheel
	mkdir -p $(RECORD)
	$(BIN)/python -m benches.spark.select_headers --record $(RECORD)/spark.json

.PHONY: bench-quick
bench-quick: target/jvm/.built $(VENV)/.wheel ## Run every benchmark once on small data: checks the answers, times nothing
	cargo test --no-default-features --bench '*'
	LETTERHEAD_BENCH=quick $(PYTEST) -c benches/python/pytest.ini benches/python
	answers=$$($(BIN)/python -m benches.jvm.export 500 target/jvm/blocks-quick.bin); \
	  java -cp 'target/jvm/classes:target/jvm/lib/*' \
	    org.apache.kafka.streams.state.internals.HeadersBenchmark quick $$answers target/jvm/quick.json \
    > target/jvm/quick.log 2>&1 || { cat target/jvm/quick.log; exit 1; }
	LETTERHEAD_BENCH=quick $(BIN)/python -m benches.spark.select_headers

# The environments. A stamp is newer than what it was made from, or it is made again.

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "python 3.11 or newer is needed; say where: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -c 'import sys; sys.exit("letterhead needs python 3.11 or newer; say where: make PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'  # the first that knows --group
	touch $@

$(VENV)/.deps: pyproject.toml $(VENV)/.python
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

$(VENV)/.docs: docs/requirements.txt $(VENV)/.wheel
	$(BIN)/python -m pip install --quiet -r docs/requirements.txt
	touch $@

# A real wheel, installed as a user would: nothing is tested that is not in it.
$(VENV)/.wheel: $(WHEEL_SOURCES) $(VENV)/.deps
	rm -f dist/letterhead-*.whl
	$(BIN)/maturin build --quiet --release --locked --out dist
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps dist/letterhead-*.whl
	touch $@

# setuptools stands in for distutils, which pyspark 3.5 imports and Python 3.12 dropped.
$(VENV35)/.deps: tests/spark/requirements-3.5.txt
	$(PYTHON) -m venv $(VENV35)
	$(BIN35)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN35)/python -m pip install --quiet -r tests/spark/requirements-3.5.txt 'setuptools<81'
	touch $@

$(VENV35)/.wheel: $(VENV)/.wheel $(VENV35)/.deps
	$(BIN35)/python -m pip install --quiet --force-reinstall --no-deps dist/letterhead-*.whl
	touch $@

target/jvm/.built: $(JVM_SOURCES)
	mvn -q -B -f benches/jvm/pom.xml process-classes
	touch $@
