# The commands of every day, the same ones that CI calls; what is needed more rarely is in tools/. Needs Python 3.11+, Rust,
# JDK 17, Maven, make and git; everything else goes into .venv. An interrupted target continues where it stopped.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SAIL := .venv-sail
CORE := python/letterhead/_native.abi3.so
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Containers often set it. Then every process compiles the package, and every worker rewrites all tests, anew.
export PYTHONDONTWRITEBYTECODE :=

# Examples of each property, and processes, of the tests that `make check` runs.
CHECK_EXAMPLES ?= 5
CHECK_PROCESSES ?= $(shell nproc)
# The parts of `make check`, which run beside each other.
CHECK_PARTS ?= check-lint dev check-tests check-rust
FUZZ_TIME ?= 60
# What the demonstration runs on: spark or sail.
ENGINE ?= spark

WHEEL_SOURCES := $(shell find src python -type f \( -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name py.typed \) 2>/dev/null) \
  Cargo.toml Cargo.lock pyproject.toml README.md LICENSE NOTICE THIRD-PARTY.txt
PYTHON_CODE := python tests benches docs $(wildcard examples)
NEED_MAVEN = @command -v java >/dev/null && command -v mvn >/dev/null || { echo "JDK 17 and Maven are needed: java and mvn on the PATH"; exit 1; }

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nAnd in tools/, each with --help: %s\n\n' "$$(ls -p tools | grep -v '\.sh$$\|/$$' | paste -sd ' ')"

.PHONY: setup
setup: $(VENV)/.wheel ## Create .venv, build the wheel and install it with everything that the targets need
	@echo "ready: $(BIN)/letterhead"

.PHONY: demo
demo: setup $(if $(filter sail,$(ENGINE)),$(SAIL)/.wheel) ## Run the demonstration on a real topic and a real state store (tests/samples); ENGINE=sail: without Java
	$(if $(filter sail,$(ENGINE)),$(SAIL),$(VENV))/bin/python examples/demo --engine $(ENGINE)

.PHONY: kafka
kafka: target/kafka/.built ## Start a Kafka broker on this machine, and a schema registry if it is built, and print what to paste next
	@[ -e $(VENV)/.wheel ] || $(MAKE) setup
	@$(BIN)/python -m tests.kafka.play start

.PHONY: kafka-stop
kafka-stop: ## Stop them
	@$(BIN)/python -m tests.kafka.play stop

##@ Develop

# An unoptimized core beside the sources, as an editable install has it: PYTHONPATH=python uses both. Wheels do not contain it.
.PHONY: dev
dev: $(VENV)/.deps ## Compile the core quickly into python/letterhead (use it with PYTHONPATH=python)
	cargo build --quiet --lib --features python
	@for made in target/debug/libletterhead.so target/debug/libletterhead.dylib; do \
	  [ ! -e $$made ] || cmp -s $$made $(CORE) || install $$made $(CORE); done

.PHONY: check
check: $(VENV)/.deps ## Format, lints, types, Rust unit tests, fast Python tests without a JVM (2 minutes after an edit)
	@[ -e $(VENV)/.wheel ] || $(MAKE) setup
	@$(MAKE) --jobs 2 --output-sync=target $(CHECK_PARTS)

.PHONY: format
format: $(VENV)/.deps ## Format the sources
	cargo fmt
	$(BIN)/ruff check --fix $(PYTHON_CODE)
	$(BIN)/ruff format $(PYTHON_CODE)

.PHONY: test
test: ## Run the tests (12 minutes); one tier of them: tools/test --help
	tools/test

.PHONY: test-long
test-long: ## Run what `test` leaves out: kills, load, more random input, other Sparks; tests/RECORD.md keeps the last run
	tools/test --long

.PHONY: man
man: setup ## Write the manual pages of the command into target/man
	$(BIN)/python tools/man --out target/man

.PHONY: docs
docs: $(VENV)/.docs ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site
	@echo "site/index.html"

.PHONY: bench
bench: ## Run all benchmarks, print one table, write docs/benchmarks.md (an hour); one part: tools/bench --help
	tools/bench

.PHONY: fuzz
fuzz: ## Fuzz the core for FUZZ_TIME seconds a target (needs nightly Rust and cargo-fuzz)
	FUZZ_TIME=$(FUZZ_TIME) tools/fuzz core

.PHONY: clean
clean: ## Remove everything that was built, .venv too
	rm -rf $(VENV) $(SAIL) .venv-spark* .venv-daft .venv-kafkarrow target benches/iggy/target benches/opponents/*/target dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	rm -f $(CORE)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The parts of check.

.PHONY: check-lint
check-lint:
	cargo fmt --check
	$(BIN)/ruff check --quiet $(PYTHON_CODE)
	$(BIN)/ruff format --quiet --check $(PYTHON_CODE)
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/typing/mypy.ini
	$(BIN)/pyright --pythonpath $(BIN)/python

.PHONY: check-tests
check-tests: dev
	PYTHONPATH=$(CURDIR)/python LETTERHEAD_EXAMPLES=$(CHECK_EXAMPLES) $(BIN)/python -m pytest tests --ignore tests/spark --ignore tests/load \
	  -m "not full and not jvm and not slow and not broker and not iggy_server" --quiet -n $(CHECK_PROCESSES) --dist loadfile --max-worker-restart 0

.PHONY: check-rust
check-rust:
	cargo clippy --quiet --all-targets --features python,mimalloc -- -D warnings
	PROPTEST_CASES=16 PROPTEST_RNG_SEED=82 cargo test --quiet --no-default-features --lib

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

# What letterhead is compared with.
$(VENV)/.bench: $(VENV)/.deps
	$(BIN)/python -m pip install --quiet apache-iggy==0.9.0
	touch $@

# What watches which lines of Python an input reaches.
$(VENV)/.atheris: $(VENV)/.wheel
	$(BIN)/python -m pip install --quiet 'atheris>=2.3'
	touch $@

$(VENV)/.mutation: pyproject.toml $(VENV)/.deps
	$(BIN)/python -m pip install --quiet --group mutation
	touch $@

$(VENV)/.wheels: pyproject.toml $(VENV)/.python
	$(BIN)/python -m pip install --quiet --group wheels
	touch $@

$(VENV)/.supply: pyproject.toml $(VENV)/.deps
	$(BIN)/python -m pip install --quiet --group supply
	touch $@

# Some 300 crates: it takes minutes, once.
target/tools/bin/cargo-deny:
	cargo install --quiet --locked --root target/tools --target-dir target/tools/build cargo-deny@0.20.2

$(VENV)/.docs: docs/requirements.txt $(VENV)/.wheel
	$(BIN)/python -m pip install --quiet -r docs/requirements.txt
	touch $@

# A real wheel, installed as a user would: nothing is tested that is not in it.
$(VENV)/.wheel: $(WHEEL_SOURCES) $(VENV)/.deps
	rm -f dist/letterhead-*.whl dist/release/letterhead-*  # of other sources
	$(BIN)/maturin build --quiet --release --locked --compression-level 9 --out dist
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps dist/letterhead-*.whl
	touch $@

# What Sail runs with: Spark's client alone.
$(SAIL)/.deps: tests/spark/requirements-sail.txt tests/spark/requirements-smoke.txt
	$(PYTHON) -m venv $(SAIL)
	$(SAIL)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(SAIL)/bin/python -m pip install --quiet -r $<
	touch $@

$(SAIL)/.wheel: $(VENV)/.wheel $(SAIL)/.deps
	$(SAIL)/bin/python -m pip install --quiet --force-reinstall --no-deps dist/letterhead-*.whl
	touch $@

# Another version of Spark, such as .venv-spark3.5.9.
.venv-spark%/.deps: tests/spark/requirements-smoke.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(@D)/bin/python -m pip install --quiet -r $< pyspark==$*
	touch $@

.PRECIOUS: .venv-spark%/.deps
.venv-spark%/.wheel: $(VENV)/.wheel .venv-spark%/.deps
	$(@D)/bin/python -m pip install --quiet --force-reinstall --no-deps dist/letterhead-*.whl
	touch $@

# Classes that JVMs of Spark map instead of loading them.
target/spark.jsa: tests/helpers/spark_archive.py $(VENV)/.deps
	@mkdir -p $(@D)
	PYSPARK_PYTHON=$(BIN)/python $(BIN)/python -m tests.helpers.spark_archive $@ 2> target/spark-archive.log || { cat target/spark-archive.log >&2; exit 1; }

# Java programs: benchmarks; Kafka Streams, for tests to read what it writes and the other way round; a broker, and the jars
# with which Spark reaches one; a schema registry.

target/jvm/.built: benches/jvm/pom.xml $(shell find benches/jvm/src -name '*.java')
	$(NEED_MAVEN)
	mvn -q -B -f $< process-classes
	touch $@

JVM_TESTS := tests/jvm/pom.xml docs/versions.toml $(shell find tests/jvm/src -name '*.java')
BROKER := tests/jvm/broker/pom.xml docs/versions.toml $(shell find tests/jvm/broker/src -name '*.java')
target/jvm-tests/.built: $(JVM_TESTS)
	$(call build_jvm,$(REFERENCE_KAFKA))
target/jvm-tests-%/.built: $(JVM_TESTS)
	$(call build_jvm,$*)
target/kafka/.built: $(BROKER)
	$(call build_jvm,$(REFERENCE_KAFKA))
target/kafka-%/.built: $(BROKER)
	$(call build_jvm,$*)

# A schema registry: a program with its libraries.
target/registry/.built: docs/versions.toml
	$(NEED_MAVEN)
	rm -rf $(@D)
	mvn -q -B dependency:copy -DoutputDirectory=$(CURDIR)/$(@D) -Dmdep.stripVersion=true \
	  -Dartifact=io.apicurio:apicurio-registry-app:$(call version,registry.apicurio):tar.gz:all
	tar -xzf $(@D)/apicurio-registry-app-all.tar.gz -C $(@D)
	rm $(@D)/apicurio-registry-app-all.tar.gz
	touch $@

# What Java programs read values with.
target/serdes/.built: tests/jvm/serdes/pom.xml docs/versions.toml
	$(NEED_MAVEN)
	rm -rf $(@D)
	mvn -q -B -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D) \
	  -Dapicurio.version=$(call version,registry.apicurio)
	touch $@

# A directory without a version in its name, target/kafka, has the reference version of docs/versions.toml; target/kafka-4.3.1
# has that one. Jars of an earlier build are removed first, because programs run with all jars of a directory.
version = $(shell $(PYTHON) tools/versions $1)
REFERENCE_KAFKA = $(call version,kafka.reference)
define build_jvm
	$(NEED_MAVEN)
	rm -rf $(@D)
	mvn -q -B -f $< -Dbuilt=$(CURDIR)/$(@D) -Dkafka.version=$1 -Dspark.version=$(call version,spark.connector) process-classes
	touch $@
endef
