SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
# Without bytecode, each process compiles every module that it imports: 20 CPU seconds for each worker of the tests.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
# Written last, so that an interrupted installation is repeated. They contain the path of the clone: a virtual
# environment does not survive being moved.
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
# Each worker has a JVM of its own. WORKERS=0 runs the tests in one process, as --pdb needs.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest
# Each measures one thing, and says which in its first line; the results are in benchmarks/results.
BENCHMARKS ?= write row_level delete_and_upsert small_files rules bnpl feeds erasure graph start idle gaps \
	warm try refresh kept_rows tables executors requests
# conftest.py orders the files; without this option, xdist would start the longest ones last.
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# What `make test-changed` compares with.
BASE ?= origin/main

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(INSTALLED) ## Install the runtime packages and Spark's jars, and a JVM if the machine has none
	@$(BIN)/lakehouse setup

.PHONY: setup-dev
setup-dev: $(INSTALLED_DEV) ## Install the development packages as well
	@$(BIN)/lakehouse setup

ifneq ($(shell cat $(INSTALLED) 2>/dev/null),$(CURDIR))
.PHONY: $(INSTALLED)
endif
ifneq ($(shell cat $(INSTALLED_DEV) 2>/dev/null),$(CURDIR))
.PHONY: $(INSTALLED_DEV)
endif
$(INSTALLED): requirements.lock pyproject.toml setup.cfg .ci/install
	@.ci/install $(VENV) requirements.lock
	@echo "$(CURDIR)" > $@

# The development lock contains all versions of the runtime lock.
$(INSTALLED_DEV): requirements-dev.lock pyproject.toml setup.cfg .ci/install
	@.ci/install $(VENV) requirements-dev.lock
	@echo "$(CURDIR)" | tee $(INSTALLED) > $@

.PHONY: demo
demo: $(INSTALLED) ## Set up, land the sample files and run the pipelines
	@$(BIN)/lakehouse setup --no-archive
	@# The archive of Java's classes takes half a minute, so it is made while the pipelines run.
	@$(BIN)/lakehouse setup >/dev/null 2>&1 & archive=$$!; $(BIN)/lakehouse demo; wait $$archive

.PHONY: dev
dev: setup ## Set up, and open the Dagster UI at http://127.0.0.1:3000
	@$(BIN)/lakehouse dev

.PHONY: test
test: setup-dev ## Run the standard tests, 15 minutes on two cores; ARGS="-k merge" passes options on to pytest
	@$(PYTEST) $(PARALLEL) $(ARGS)

.PHONY: test-unit
test-unit: setup-dev ## Run the standard tests that start no JVM
	@$(PYTEST) -m "unit and not long and not soak" $(PARALLEL) $(ARGS)

.PHONY: test-spark
test-spark: setup-dev ## Run the standard tests on one Spark session for each worker
	@$(PYTEST) -m "spark and not long and not soak" $(PARALLEL) $(ARGS)

.PHONY: test-changed
test-changed: setup-dev ## Run the standard tests that depend on files changed since BASE (default: origin/main)
	@tests=$$($(BIN)/python -m lakehouse_tests.changed $(BASE)); \
	if [ -z "$$tests" ]; then echo "No test depends on the changes since $(BASE)."; \
	else $(PYTEST) $(PARALLEL) $$tests $(ARGS); fi

.PHONY: test-all
test-all: setup-dev ## Run all tests except the soak tests, up to 90 minutes
	@$(PYTEST) -m "not soak" $(PARALLEL) $(ARGS)

# Iceberg 1.7.1 is not supported on the embedded catalog, so its tests run on Glue.
.PHONY: test-glue
test-glue: setup-dev ## Run the engine, the pipelines and upkeep on the Spark of AWS Glue 5.0, and on the newest Spark 3.5
	@.ci/ministack
	@ON_GLUE=1 .ci/spark_line glue-5-0 1.7.1 $(PARALLEL) -m "spark and not soak" lakehouse_tests/iceberg $(ARGS)
	@.ci/spark_line glue-5-0 1.7.1 -m e2e lakehouse_tests/assets/test_on_glue.py lakehouse_tests/orchestration/table_jobs $(ARGS)
	@.ci/spark_line spark-3-5 1.12.0 $(PARALLEL) -m "spark and not soak" lakehouse_tests/iceberg lakehouse_tests/assets lakehouse_tests/testing $(ARGS)
	@.ci/spark_line spark-3-5 1.12.0 -m e2e lakehouse_tests/assets/test_on_glue.py $(ARGS)

.PHONY: test-glue-catalog
test-glue-catalog: setup-dev ## Run the engine tests on Glue that `make test` runs on the embedded catalog
	@.ci/ministack
	@ON_GLUE=1 $(PYTEST) -m "spark and not soak" $(PARALLEL) lakehouse_tests/iceberg $(ARGS)

.PHONY: wheel
wheel: setup-dev ## Build the package's wheel in dist/
	@$(BIN)/python -c "from setuptools import build_meta; print('dist/' + build_meta.build_wheel('dist'))" | tail -1

.PHONY: screens
screens: setup-dev ## Take the pictures in docs/images with Chromium
	@REQUIRE_BROWSER=1 SCREENS=docs/images $(PYTEST) -m long lakehouse_tests/cli/test_dev.py -k people_see $(ARGS)

# A page about some of the tests would be misleading, so ARGS leaves it unchanged.
.PHONY: costs
costs: setup-dev ## Measure the CPU seconds of each standard test, and write them to docs/testing.md
	@$(PYTEST) -p lakehouse_tests.costs $(if $(ARGS),,--costs-page docs/testing.md) $(PARALLEL) $(ARGS)

.PHONY: reference
reference: setup-dev ## Generate docs/reference.md and docs/commands.md
	@$(BIN)/python -m lakehouse_tests.docs.reference
	@$(BIN)/python -m lakehouse_tests.docs.commands

.PHONY: soak
soak: setup-dev ## Run the longest tests for hours, then all engine tests on Glue and Spark 3.5
	@$(PYTEST) -m soak $(ARGS)
	@SOAK=1 $(PYTEST) -m "hypothesis and not soak" $(ARGS)
	@$(MAKE) test-glue-catalog test-glue

.PHONY: bench
bench: setup-dev ## Measure all of BENCHMARKS, or BENCHMARKS="write rules"; ARGS="--rounds 1" makes it short
	@failed=; for name in $(BENCHMARKS); do \
		echo "== bench_$$name" >&2; \
		$(BIN)/python -m benchmarks.bench_$$name $(ARGS) || failed+=" bench_$$name"; \
	done; \
	[ -z "$$failed" ] || { echo "These failed or missed an enforced target:$$failed" >&2; exit 1; }

.PHONY: lint
lint: setup-dev ## Check style, format, types and the dependency rule
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m lakehouse_tests.weight --check

.PHONY: weight
weight: setup-dev ## Print the size and structure of the codebase, with the goals
	@$(BIN)/python -m lakehouse_tests.weight

.PHONY: format
format: setup-dev ## Put the code into its format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: lock
lock: ## Update the lock files from pyproject.toml
	@.ci/lock

.PHONY: clean
clean: ## Remove the virtual environment and caches; tables, in LAKEHOUSE_HOME, and jars stay
	@rm -rf $(VENV) .venv-* build dist ./*.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find lakehouse lakehouse_tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
