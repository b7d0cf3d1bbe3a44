SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
# Written last, so that a set-up cut short is not taken for a whole one. It holds the clone's own path: a virtual
# environment does not survive being moved.
INSTALLED := $(VENV)/.installed
# Test files run side by side, each worker with a JVM of its own; WORKERS=0 runs them one after the other, as --pdb needs.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest
# Each measures one thing, and says which in its first line; the results are in benchmarks/results.
BENCHMARKS ?= write row_level delete_and_upsert small_files rules bnpl feeds erasure graph start event_log idle gaps \
	warm try refresh kept_rows tables executors requests
# In the order in which they were collected: by itself xdist puts files with few tests, which take longest, last.
SIDE_BY_SIDE := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(INSTALLED) ## Set everything up: virtual environment, Spark's jars, and a JVM where there is none
	@$(BIN)/lakehouse setup

ifneq ($(shell cat $(INSTALLED) 2>/dev/null),$(CURDIR))
.PHONY: $(INSTALLED)
endif
$(INSTALLED): requirements-dev.lock pyproject.toml setup.cfg .ci/install
	@.ci/install $(VENV)
	@echo "$(CURDIR)" > $@

.PHONY: demo
demo: setup ## Set up, land the sample files and run the pipelines
	@$(BIN)/lakehouse demo

.PHONY: dev
dev: setup ## Set up, and open the Dagster UI at http://127.0.0.1:3000
	@$(BIN)/lakehouse dev

.PHONY: test
test: setup ## Set up, and run the tests of all three speeds but the longest; ARGS="-k merge" passes options on to pytest
	@$(PYTEST) $(SIDE_BY_SIDE) $(ARGS)

.PHONY: test-unit
test-unit: setup ## Run the tests that start no JVM: minutes
	@$(PYTEST) -m "unit and not long and not soak" $(SIDE_BY_SIDE) $(ARGS)

.PHONY: test-spark
test-spark: setup ## Run the tests on one Spark session for each worker: minutes
	@$(PYTEST) -m "spark and not soak" $(SIDE_BY_SIDE) $(ARGS)

.PHONY: test-e2e
test-e2e: setup ## Run the tests of whole commands and processes, each with a JVM of its own
	@$(PYTEST) -m "e2e and not long and not soak" $(SIDE_BY_SIDE) $(ARGS)

.PHONY: test-long
test-long: setup ## Run those of them that take longest, which `make test` leaves to .ci/run: kills, contests of writers, a cluster
	@$(PYTEST) -m "long and not soak" $(SIDE_BY_SIDE) $(ARGS)

# Of Iceberg 1.7.1, which is refused on the embedded catalog, all of it is on Glue.
.PHONY: test-glue
test-glue: setup ## Run the engine, the pipelines and upkeep on the Spark of AWS Glue 5.0, and on the newest Spark 3.5
	@.ci/ministack
	@ON_GLUE=1 .ci/spark_line glue-5-0 1.7.1 $(SIDE_BY_SIDE) -m "spark and not soak" lakehouse_tests/iceberg $(ARGS)
	@.ci/spark_line glue-5-0 1.7.1 -m e2e lakehouse_tests/assets/test_on_glue.py lakehouse_tests/orchestration/table_jobs $(ARGS)
	@.ci/spark_line spark-3-5 1.12.0 $(SIDE_BY_SIDE) -m "spark and not soak" lakehouse_tests/iceberg lakehouse_tests/assets lakehouse_tests/testing $(ARGS)
	@.ci/spark_line spark-3-5 1.12.0 -m e2e lakehouse_tests/assets/test_on_glue.py $(ARGS)

# Each of them on the catalog of the other deployment; who has a reason not to says it.
.PHONY: test-glue-catalog
test-glue-catalog: setup ## Run the tests of the engine that `make test` runs on the embedded catalog on Glue
	@.ci/ministack
	@ON_GLUE=1 $(PYTEST) -m "spark and not soak" $(SIDE_BY_SIDE) lakehouse_tests/iceberg $(ARGS)

.PHONY: wheel
wheel: setup ## Build the package's wheel, in dist/, by what the lock file has
	@$(BIN)/python -c "from setuptools import build_meta; print('dist/' + build_meta.build_wheel('dist'))" | tail -1

.PHONY: screens
screens: setup ## Take the pictures in docs/images anew, with Chromium: a minute
	@REQUIRE_BROWSER=1 SCREENS=docs/images $(PYTEST) lakehouse_tests/cli/test_dev.py -k people_see $(ARGS)

# Of a part of the tests the page would tell a part, so that ARGS leave it as it is.
.PHONY: costs
costs: setup ## Run all tests, and write to docs/testing.md the slowest by the processor's time, and those that start a JVM
	@$(PYTEST) -m "not soak" -p lakehouse_tests.costs $(if $(ARGS),,--costs-page docs/testing.md) $(SIDE_BY_SIDE) $(ARGS)

.PHONY: reference
reference: setup ## Write docs/reference.md and docs/commands.md anew from what the code says of itself
	@$(BIN)/python -m lakehouse_tests.docs.reference
	@$(BIN)/python -m lakehouse_tests.docs.commands

.PHONY: soak
soak: setup ## Run the longest tests: a cluster and its deaths, writers that contend, a month of transactions; then all on Glue and Spark 3.5
	@$(PYTEST) -m soak $(ARGS)
	@SOAK=1 $(PYTEST) -m "hypothesis and not soak and not long" $(ARGS)
	@$(MAKE) test-glue-catalog test-glue

.PHONY: bench
bench: setup ## Measure all of BENCHMARKS, or BENCHMARKS="write rules"; ARGS="--rounds 1" makes it short
	@broken=; for name in $(BENCHMARKS); do \
		echo "== bench_$$name" >&2; \
		$(BIN)/python -m benchmarks.bench_$$name $(ARGS) || broken+=" bench_$$name"; \
	done; \
	[ -z "$$broken" ] || { echo "These failed or broke a promise:$$broken" >&2; exit 1; }

.PHONY: lint
lint: setup ## Check style, format, types and the dependency rule
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: setup ## Put the code into its format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: lock
lock: ## Write the lock files anew from pyproject.toml; needs uv
	@.ci/lock

.PHONY: clean
clean: ## Remove the virtual environment and caches; tables, in LAKEHOUSE_HOME, and jars stay
	@rm -rf $(VENV) .venv-* build dist ./*.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find lakehouse lakehouse_tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
