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
# Random inputs are the same in every run of the tests; `make fuzz-properties` draws new ones.
export PROPTEST_RNG_SEED ?= 82

# Benchmarks of one core run on one core: the last one, where there is taskset.
PIN ?= $(shell command -v taskset >/dev/null 2>&1 && echo taskset -c $$(( $$(nproc) - 1 )))
LONG_EXAMPLES ?= 100
FUZZ_EXAMPLES ?= 20000
FUZZ_TIME ?= 60
FUZZ_TARGETS ?=
FUZZ_FORMATS ?=
MIRI_TARGETS ?= x86_64-unknown-linux-gnu i686-unknown-linux-gnu s390x-unknown-linux-gnu
MIRI_CASES ?= 2
# What is long or in C by name.
MIRI_TESTS ?= --skip codec
ASAN_CASES ?= 32
ASAN_TARGET := target/asan
ASAN_TESTS ?= tests/python/test_arrow.py tests/python/test_arrow_formats.py tests/python/test_bad_input.py \
  tests/python/test_bad_formats.py tests/python/test_batch.py tests/python/test_amqp.py tests/python/test_decoded_headers.py \
  tests/python/test_vectors.py tests/python/test_columns.py
HOST = $(shell rustc -vV | awk '/^host:/ { print $$2 }')
NEED_NIGHTLY = @cargo +nightly --version >/dev/null 2>&1 || { \
  echo "nightly Rust is needed: rustup toolchain install nightly --profile minimal"; exit 1; }
RECORD := benches/record
BENCH_ROWS ?= 16000

WHEEL_SOURCES := $(shell find src python -type f \( -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name py.typed \) 2>/dev/null) \
  Cargo.toml Cargo.lock pyproject.toml README.md LICENSE NOTICE THIRD-PARTY.txt
JVM_SOURCES := benches/jvm/pom.xml $(shell find benches/jvm/src -name '*.java')
JVM_TEST_SOURCES := tests/jvm/pom.xml $(shell find tests/jvm/src -name '*.java')
KAFKA_SOURCES := tests/jvm/broker/pom.xml $(shell find tests/jvm/broker/src -name '*.java')
NEED_MAVEN = @command -v java >/dev/null && command -v mvn >/dev/null || { echo "JDK 17 and Maven are needed: java and mvn on the PATH"; exit 1; }
PYTHON_CODE := python tests benches docs $(wildcard examples)
ARCH = $(firstword $(subst -, ,$(HOST)))
RELEASE := dist/release
# Where `make test-wheels` looks: the wheel of setup, and those for a release if they are there.
WHEELS ?= dist $(RELEASE)
CARGO_DENY := target/tools/bin/cargo-deny
# Interpreters of this machine that wheels are tested in, this one always; those that are not there are passed over.
TEST_PYTHONS ?= $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3.14t /usr/bin/python3

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
	$(BIN)/python examples/demo

.PHONY: kafka
kafka: $(VENV)/.wheel target/kafka/.built ## Start a Kafka broker on this machine, fill a topic, and say what to paste next
	@$(BIN)/python tests/kafka/play.py start

.PHONY: kafka-stop
kafka-stop: ## Stop that broker
	@$(BIN)/python tests/kafka/play.py stop

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
	$(MAKE) types

# The stubs are compared with the module that is installed.
.PHONY: types
types: $(VENV)/.wheel ## Check types: of the package, of what its users get, and the stubs of the compiled module
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m mypy.stubtest letterhead._native --mypy-config-file pyproject.toml

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
	rm -rf $(VENV) $(VENV35) target benches/iggy/target dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

##@ Test

.PHONY: test
test: test-rust bench-quick test-doc test-python test-spark test-kafka ## Run the first tier of the tests (25 minutes at most)

.PHONY: test-all
test-all: test test-full ## Run every test there is (60 minutes at most)

.PHONY: test-rust
test-rust: ## Test the Rust core, with no Python in it
	cargo test --no-default-features

.PHONY: test-python
test-python: $(VENV)/.wheel target/jvm-tests/.built ## Test the Python package, without Spark
	$(PYTEST) tests/python tests/read tests/state -m "not full"

.PHONY: test-doc
test-doc: $(VENV)/.wheel ## Run the examples in docstrings and in the documentation; the tutorial starts Spark (test-spark runs those of its docstrings)
	$(PYTEST) --doctest-modules --pyargs letterhead --ignore-glob='*/letterhead/spark/*'
	$(PYTEST) --doctest-glob='*.md' docs

.PHONY: test-spark
test-spark: $(VENV)/.wheel ## Test with Spark 4.2
	$(PYTEST) tests/spark -m "not full"

.PHONY: test-kafka
test-kafka: $(VENV)/.wheel target/kafka/.built ## Test with a Kafka broker between a producer, Spark and a consumer
	$(PYTEST) tests/kafka -m "not full"

.PHONY: test-full
test-full: test-long test-instructions test-wheels test-spark35 ## Run what test-all adds to test

# What is marked as long, and every property with more examples than the first tier tries.
.PHONY: test-long
test-long: $(VENV)/.wheel target/jvm-tests/.built target/kafka/.built
	PROPTEST_CASES=$(LONG_EXAMPLES) cargo test --no-default-features
	LETTERHEAD_EXAMPLES=$(LONG_EXAMPLES) $(PYTEST) tests/python tests/read tests/state -m "full or hypothesis" --timeout 1800
	LETTERHEAD_EXAMPLES=$(LONG_EXAMPLES) $(PYTEST) tests/spark -m "full or hypothesis"
	$(PYTEST) tests/kafka -m full
	$(PYTEST) tests/load -m full

# What was built is installed as a user would, in environments with nothing else.
.PHONY: test-wheels
test-wheels: $(VENV)/.wheels $(if $(filter dist,$(WHEELS)),$(VENV)/.wheel) ## Test the wheels of setup and of `make wheels`: tags, interface, contents, and each in clean environments
	$(BIN)/python tests/wheels/check.py $(WHEELS) --python $(TEST_PYTHONS)

.PHONY: test-sdist
test-sdist: $(VENV)/.wheels ## Build and test the source distribution in dist/release far from this directory (minutes)
	$(BIN)/python tests/wheels/check.py $(RELEASE) --sdist

.PHONY: test-spark35
test-spark35: $(VENV35)/.wheel ## Smoke-test the transforms on Spark 3.5, in an environment of its own
	PYSPARK_PYTHON=$(abspath $(BIN35)/python) PYSPARK_DRIVER_PYTHON=$(abspath $(BIN35)/python) \
	  $(BIN35)/python -m pytest tests/spark -m spark35

.PHONY: test-instructions
test-instructions: $(VENV)/.deps ## Hold the instructions that the kernels take for a header to those on record (needs valgrind)
	$(BIN)/python -m benches.instructions

# Guided by coverage, and each format by itself. What each target asks is in fuzz/README.md.
.PHONY: fuzz
fuzz: ## Fuzz the core for FUZZ_TIME seconds a target, all or FUZZ_TARGETS (needs nightly Rust and cargo-fuzz)
	$(PYTHON) fuzz/run.py --time $(FUZZ_TIME) --targets "$(FUZZ_TARGETS)" --formats "$(FUZZ_FORMATS)"

.PHONY: fuzz-twin
fuzz-twin: $(VENV)/.atheris ## Fuzz the core against plain Python for FUZZ_TIME seconds
	$(PYTHON) fuzz/seeds.py fuzz/corpus
	mkdir -p fuzz/artifacts/twin
	for format in $$(ls fuzz/corpus/twin); do \
	  echo "$$format"; \
	  LETTERHEAD_FUZZ_FORMAT=$$format $(abspath $(BIN))/python fuzz/twin.py fuzz/corpus/twin/$$format \
	    -max_total_time=$$(( $(FUZZ_TIME) / 20 + 1 )) -max_len=2048 -artifact_prefix=fuzz/artifacts/twin/ \
	    2>&1 | awk '/^Done|Error|^==/'; \
	done

.PHONY: fuzz-properties
fuzz-properties: $(VENV)/.wheel ## Run the properties, Rust against plain Python, on many more random inputs
	env -u PROPTEST_RNG_SEED PROPTEST_CASES=$(FUZZ_EXAMPLES)0 cargo test --no-default-features
	LETTERHEAD_RANDOM=1 LETTERHEAD_EXAMPLES=$(FUZZ_EXAMPLES) $(PYTEST) tests/python -m hypothesis --timeout 7200

# Miri runs no C, and so nothing of Zstandard's library; a compiler is still called for it, whose objects nobody links.
.PHONY: miri
miri: ## Interpret tests of the core in search of undefined behaviour: 64 bits, 32 bits, big-endian (needs Miri)
	@cargo +nightly miri --version >/dev/null 2>&1 || { \
	  echo "Miri is needed: rustup toolchain install nightly --profile minimal --component miri --component rust-src"; exit 1; }
	for target in $(MIRI_TARGETS); do \
	  echo "$$target"; \
	  PROPTEST_CASES=$(MIRI_CASES) MIRIFLAGS=-Zmiri-disable-isolation CRATE_CC_NO_DEFAULTS=1 CC=cc AR=ar \
	    cargo +nightly miri test --target $$target --no-default-features --lib -- $(MIRI_TESTS); \
	done

# The runtime of the sanitizer has to be there before Python's first allocation, and the module must not bring an
# allocator of its own, which the sanitizer would not see. What was never freed is no finding: Python keeps much to its end.
ASAN_RUSTFLAGS := -Zsanitizer=address --cfg address_sanitizer
.PHONY: asan
asan: asan-rust asan-python ## Run tests of the core, and of Python on it, with the address sanitizer (needs nightly Rust)

.PHONY: asan-rust
asan-rust:
	$(NEED_NIGHTLY)
	RUSTFLAGS="$(ASAN_RUSTFLAGS)" PROPTEST_CASES=$(ASAN_CASES) CARGO_TARGET_DIR=$(ASAN_TARGET) \
	  cargo +nightly test --no-default-features --target $(HOST) --lib --tests

.PHONY: asan-python
asan-python: $(VENV)/.wheel
	$(NEED_NIGHTLY)
	RUSTFLAGS="$(ASAN_RUSTFLAGS)" CARGO_TARGET_DIR=$(ASAN_TARGET) \
	  cargo +nightly build --release --features python --target $(HOST) --lib
	cp $$(rustc +nightly --print target-libdir)/librustc-nightly_rt.asan.a $(ASAN_TARGET)/runtime.a
	ar d $(ASAN_TARGET)/runtime.a asan_preinit.cpp.o  # what only a program may have
	cc -shared -o $(ASAN_TARGET)/runtime.so -Wl,--whole-archive $(ASAN_TARGET)/runtime.a -Wl,--no-whole-archive \
	  -lpthread -ldl -lm -lrt
	rm -rf $(ASAN_TARGET)/python && mkdir -p $(ASAN_TARGET)/python
	cp -r python/letterhead $(ASAN_TARGET)/python/
	cp $(ASAN_TARGET)/$(HOST)/release/libletterhead.so $(ASAN_TARGET)/python/letterhead/_native.abi3.so
	LD_PRELOAD=$(abspath $(ASAN_TARGET))/runtime.so ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 \
	  PYTHONMALLOC=malloc ARROW_DEFAULT_MEMORY_POOL=system PYTHONPATH=$(abspath $(ASAN_TARGET))/python \
	  $(PYTEST) $(ASAN_TESTS) --timeout 1800

##@ Release

# zig brings the C library of an old system: a wheel runs where glibc is 2.17 or newer, wherever it was built.
.PHONY: wheels
wheels: $(VENV)/.wheels sdist ## Build wheels for glibc and musl and the source distribution into dist/release (15 minutes)
	rm -f $(RELEASE)/letterhead-*.whl $(RELEASE)/letterhead-*.cdx.json
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/maturin build --release --locked --zig --target $(ARCH)-unknown-linux-gnu \
	  --compatibility manylinux2014 --out $(RELEASE)
	@if rustup target list --installed 2>/dev/null | grep -qx $(ARCH)-unknown-linux-musl; then \
	  PATH="$(abspath $(BIN)):$$PATH" $(BIN)/maturin build --release --locked --zig --target $(ARCH)-unknown-linux-musl \
	    --compatibility musllinux_1_2 --out $(RELEASE); \
	else echo "no wheel for musl: rustup target add $(ARCH)-unknown-linux-musl"; fi

.PHONY: sdist
sdist: $(VENV)/.wheels ## Build the source distribution into dist/release
	mkdir -p $(RELEASE)
	rm -f $(RELEASE)/letterhead-*.tar.gz
	$(BIN)/maturin sdist --out $(RELEASE)

.PHONY: supply
supply: licences advisories ## Check licences, sources and advisories of all dependencies

.PHONY: licences
licences: $(CARGO_DENY) $(VENV)/.supply ## Check licences and sources of dependencies (no network)
	$(CARGO_DENY) --locked check licenses bans sources
	$(BIN)/python tests/wheels/licences.py --check
	$(BIN)/python tests/wheels/python_licences.py

.PHONY: advisories
advisories: $(CARGO_DENY) $(VENV)/.supply ## Ask for advisories on dependencies (GitHub and PyPI are asked)
	$(CARGO_DENY) --locked check advisories
	$(BIN)/pip-audit --strict --progress-spinner off --skip-editable --path $(VENV)/lib/python*/site-packages

.PHONY: third-party
third-party: ## Write THIRD-PARTY.txt: the licences of the crates in the wheel
	$(PYTHON) tests/wheels/licences.py

# Of the crates there is a list in each wheel; this takes it out, and adds one of what the extras bring.
.PHONY: sbom
sbom: $(VENV)/.supply ## Write bills of materials (CycloneDX) of the wheel and of its extras into dist/release
	$(BIN)/python tests/wheels/bill.py $(RELEASE)

##@ Measure

.PHONY: bench
bench: bench-rust bench-python bench-jvm bench-iggy bench-limits bench-spark bench-direct ## Run all benchmarks, print one table, keep the raw results under benches/record
	$(BIN)/python -m benches.run
	$(BIN)/python -m benches.limits.page

.PHONY: bench-table
bench-table: $(VENV)/.wheel ## Print the table of the results that are there
	$(BIN)/python -m benches.run

.PHONY: instructions-record
instructions-record: $(VENV)/.deps
	mkdir -p $(RECORD)
	$(BIN)/python -m benches.instructions --record

.PHONY: bench-rust
bench-rust:
	mkdir -p $(RECORD)
	$(PIN) cargo bench --no-default-features --bench kernels | tee $(RECORD)/rust.txt

.PHONY: bench-limits
bench-limits: target/jvm/.built $(VENV)/.wheel ## Measure the core against memcpy, Java and Python, and write docs/benchmarks.md (10 minutes)
	$(BIN)/python -m benches.limits.measure --build
	$(PIN) $(BIN)/python -m benches.limits.measure $(RECORD)/limits.json
	$(BIN)/python -m benches.limits.report
	$(BIN)/python -m benches.limits.page

.PHONY: bench-page
bench-page: $(VENV)/.wheel ## Write the figures and plots of docs/benchmarks.md from the results that are there
	$(BIN)/python -m benches.limits.page

.PHONY: bench-python
bench-python: $(VENV)/.wheel $(VENV)/.bench
	mkdir -p $(RECORD)
	$(PIN) $(PYTEST) -c benches/python/pytest.ini benches/python --benchmark-json=$(RECORD)/python.json

.PHONY: bench-jvm
bench-jvm: target/jvm/.built $(VENV)/.wheel
	mkdir -p $(RECORD)
	answers=$$($(BIN)/python -m benches.jvm.export $(BENCH_ROWS) target/jvm/blocks.bin); \
	  $(PIN) java -cp 'target/jvm/classes:target/jvm/lib/*' \
	    org.apache.kafka.streams.state.internals.HeadersBenchmark full $(RECORD)/jvm.json $$answers
	answers=$$($(BIN)/python -m benches.jvm.export_stores target/jvm/stores.bin); \
	  $(PIN) java -cp 'target/jvm/classes:target/jvm/lib/*' \
	    org.apache.kafka.streams.state.internals.StoreBenchmark full $$answers $(RECORD)/jvm-stores.json

# Apache Iggy's own crates. Some 360 others come with them, so it takes minutes to build, and bench-quick does without.
.PHONY: bench-iggy
bench-iggy: $(VENV)/.wheel
	mkdir -p $(RECORD)
	cd benches/iggy && cargo build --quiet --release --locked
	answers=$$($(BIN)/python -m benches.iggy.export benches/iggy/target/corpus); \
	  for allocator in system mimalloc; do \
	    $(PIN) benches/iggy/target/release/$$allocator $(RECORD)/iggy-$$allocator.json full $$answers; \
	  done

.PHONY: bench-spark
bench-spark: target/jvm/.built $(VENV)/.wheel
	mkdir -p $(RECORD)
	$(BIN)/python -m benches.spark.transforms --record $(RECORD)/spark.json
	$(BIN)/python -m benches.spark.topology --record $(RECORD)/spark-topology.json
	$(BIN)/python -m benches.spark.from_your_query --record $(RECORD)/from-your-query.json

.PHONY: bench-direct
bench-direct: $(VENV)/.wheel target/kafka/.built
	mkdir -p $(RECORD)
	$(BIN)/python -m benches.direct.measure --record $(RECORD)/direct.json

.PHONY: bench-quick
bench-quick: target/jvm/.built $(VENV)/.wheel $(VENV)/.bench ## Run every benchmark once on small data: checks the answers, times nothing
	cargo test --no-default-features --bench kernels
	LETTERHEAD_BENCH=quick $(PYTEST) -c benches/python/pytest.ini benches/python
	LETTERHEAD_BENCH=quick $(BIN)/python -m benches.limits.measure
	answers=$$(LETTERHEAD_BENCH=quick $(BIN)/python -m benches.jvm.export_stores target/jvm/stores-quick.bin); \
	  java -cp 'target/jvm/classes:target/jvm/lib/*' \
	    org.apache.kafka.streams.state.internals.StoreBenchmark quick $$answers target/jvm/quick-stores.json \
    > target/jvm/quick.log 2>&1 || { cat target/jvm/quick.log; exit 1; }
	LETTERHEAD_BENCH=quick $(BIN)/python -m benches.spark.transforms
	LETTERHEAD_BENCH=quick $(BIN)/python -m benches.spark.topology
	LETTERHEAD_BENCH=quick $(BIN)/python -m benches.spark.from_your_query
	LETTERHEAD_BENCH=quick $(BIN)/python -m benches.direct.measure --segments-only

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

$(VENV)/.wheels: pyproject.toml $(VENV)/.python
	$(BIN)/python -m pip install --quiet --group wheels
	touch $@

$(VENV)/.supply: pyproject.toml $(VENV)/.deps
	$(BIN)/python -m pip install --quiet --group supply
	touch $@

# Some 300 crates: it takes minutes, once.
$(CARGO_DENY):
	cargo install --quiet --locked --root target/tools --target-dir target/tools/build cargo-deny@0.20.2

$(VENV)/.docs: docs/requirements.txt $(VENV)/.wheel
	$(BIN)/python -m pip install --quiet -r docs/requirements.txt
	touch $@

# A real wheel, installed as a user would: nothing is tested that is not in it.
$(VENV)/.wheel: $(WHEEL_SOURCES) $(VENV)/.deps
	rm -f dist/letterhead-*.whl $(RELEASE)/letterhead-*  # of other sources
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
	$(NEED_MAVEN)
	mvn -q -B -f benches/jvm/pom.xml process-classes
	touch $@

# Kafka Streams, for tests to read what it writes and the other way round.
target/jvm-tests/.built: $(JVM_TEST_SOURCES)
	$(NEED_MAVEN)
	mvn -q -B -f tests/jvm/pom.xml process-classes
	touch $@

# A broker, and the jars with which Spark reaches one.
target/kafka/.built: $(KAFKA_SOURCES)
	$(NEED_MAVEN)
	mvn -q -B -f tests/jvm/broker/pom.xml process-classes
	touch $@
