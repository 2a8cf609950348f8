# The commands of the project; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CASES_DIR ?= $(wildcard ../shared/cases)

SEEDS ?=
CRAWL ?=
ROUNDS ?= 3
ARGS ?=
BENCH ?=
KILLS ?= 200

.DEFAULT_GOAL := help
.PHONY: help crawl test check bench test-cases test-portable test-packaging test-flink test-consumers test-realweb test-chaos test-kills test-hostile fuzz test-gcs test-s3 test-dataflow test-airflow clean

help:  ## list the commands
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/python.ok:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip setuptools wheel
	@touch $@

$(VENV)/run.ok: setup.py constraints.txt $(VENV)/python.ok
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[report]'
	@touch $@

$(VENV)/test.ok: setup.py constraints.txt $(VENV)/run.ok
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[report,test,dev]'
	@touch $@

$(VENV)/stores.ok: setup.py constraints.txt $(VENV)/test.ok
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[report,test,dev,gcp,aws,stores]'
	@touch $@

crawl: $(VENV)/run.ok  ## crawl the toy web, or SEEDS=file CRAWL=folder ROUNDS=n ARGS="--contact=..."
ifeq ($(strip $(SEEDS)$(CRAWL)),)
	$(BIN)/python -m tests.fakes.demo --rounds=$(ROUNDS) $(ARGS)
else
	$(BIN)/python -m pipelines.inject --crawl=$(or $(CRAWL),crawl/web) $(if $(SEEDS),--seeds=$(SEEDS))
	$(BIN)/python -m pipelines.round --crawl=$(or $(CRAWL),crawl/web) --rounds=$(ROUNDS) --runner=FnApiRunner $(ARGS)
	$(BIN)/python -m pipelines.report --crawl=$(or $(CRAWL),crawl/web)
endif

test: $(VENV)/test.ok  ## every test that needs no service
	$(BIN)/python -m pytest tests -n 3 --dist loadfile

check: $(VENV)/test.ok  ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

$(VENV)/bench.ok: setup.py constraints.txt $(VENV)/test.ok
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[report,test,dev,bench]'
	@touch $@

bench: $(VENV)/bench.ok  ## measure; BENCH="round seen" for some only
	$(BIN)/python -m tests.benchmarks $(BENCH)

test-cases: $(VENV)/test.ok  ## other projects' test cases, from CASES_DIR
	CASES_DIR="$(CASES_DIR)" $(BIN)/python -m pytest tests/conformance

test-portable: $(VENV)/test.ok  ## the toy crawl on worker processes, a worker pool, Prism
	PORTABLE=1 $(BIN)/python -m pytest tests/portable

test-packaging: $(VENV)/test.ok  ## a wheel in an empty environment runs a whole toy round
	PACKAGING=1 $(BIN)/python -m pytest tests/packaging

test-flink: $(VENV)/test.ok  ## the toy crawl on a real Flink cluster; FLINK_VERSION, FLINK_JOB_SERVER_JAR
	FLINK=1 $(BIN)/python -m pytest tests/flink

test-chaos: $(VENV)/test.ok  ## KILLS=200 kills at random moments; stops, damaged files, full disks (Linux, root)
	CHAOS=1 KILLS=$(KILLS) $(BIN)/python -m pytest tests/chaos

test-kills: $(VENV)/test.ok  ## the kills of test-chaos alone
	CHAOS=1 KILLS=$(KILLS) $(BIN)/python -m pytest tests/chaos/test_kills.py

test-hostile: $(VENV)/test.ok  ## every misbehaviour of the rogue web and 1,000 healthy pages in one round
	HOSTILE=1 $(BIN)/python -m pytest tests/hostile -s

fuzz: $(VENV)/test.ok  ## FUZZ_INPUTS=10000 hostile inputs for each format, from FUZZ_SEED=1 on
	FUZZ_INPUTS=$(or $(FUZZ_INPUTS),10000) FUZZ_SEED=$(or $(FUZZ_SEED),1) $(BIN)/python -m pytest tests/fuzz -s

test-gcs: $(VENV)/stores.ok  ## whole rounds on an emulator of Google Cloud Storage (needs Go, once)
	STORES=gs $(BIN)/python -m pytest tests/stores -s --durations=10

test-s3: $(VENV)/stores.ok  ## whole rounds on an emulator of S3
	STORES=s3 $(BIN)/python -m pytest tests/stores -s --durations=10

test-dataflow: $(VENV)/stores.ok  ## a round submitted as to Dataflow: options, graph, coders, packages
	$(BIN)/python -m pytest tests/dataflow -s --durations=10

test-airflow: $(VENV)/test.ok  ## scheduled, killed, retried and published by a real Airflow 3
	$(BIN)/python -m pytest tests/airflow -s --durations=10

test-realweb: $(VENV)/test.ok  ## crawl Debian's documentation packages behind nginx (installs them with apt-get)
	REALWEB=1 $(BIN)/python -m pytest tests/realweb -s --timeout=1800

.cache/%/tool.ok: tests/consumers/%.txt
	$(PYTHON) -m venv .cache/$*
	.cache/$*/bin/python -m pip install --quiet --requirement $<
	@touch $@

test-consumers: $(VENV)/test.ok .cache/pywb/tool.ok .cache/datatrove/tool.ok  ## pywb, other WARC readers and a browser on a toy crawl
	CONSUMERS=1 $(BIN)/python -m pytest tests/consumers -s --timeout=600

clean:  ## remove what the commands made
	rm -rf $(VENV) crawl .cache build *.egg-info
