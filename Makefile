# Ottla: `make help` lists what can be done here.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CLUSTER := $(BIN)/python -m scripts.local_kubernetes

.PHONY: help env up test test-all test-long check unit bench protos requests crds docs lock clean images cluster-up cluster-down cluster-env

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-13s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(VENV)/.ready ## Make .venv with everything for development (.venv/bin/ottla is the command)
	@$(BIN)/python scripts/compile_modules.py

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) scripts/environment.py $(VENV)

up: env ## Start three brokers in three racks, feed sample events, run a Spark pipeline over them (Ctrl-C stops all; ARGS="--port 19092")
	@$(BIN)/python -m scripts.java
	@exec $(BIN)/ottla up --data-dir data $(ARGS)

test: env ## Prove what one machine can: checks, unit tests, simulation, real and hostile clients, fleets (12 minutes; ARGS="unit fleet" for chapters)
	@$(BIN)/python scripts/test_all.py --tier test $(ARGS)

test-all: env ## The same, then faults, coordinators on fleets, Kubernetes and Spark on it (an hour at most)
	@$(BIN)/python scripts/test_all.py --tier test-all $(ARGS)

test-long: env ## Hours: soak, a million damaged requests, 5,000 histories, faults (ARGS="--list", ARGS="soak" for one)
	@$(BIN)/python scripts/test_long.py $(ARGS)

check: env ## Lint, types, import layers, drift of generated files
	@$(BIN)/python scripts/check.py

unit: env ## Unit tests only (about two minutes on two cores)
	@$(BIN)/python -m pytest tests/unit -n 2

bench: env ## Side by side with Apache Kafka, as ratios (about 40 minutes; ARGS="--quick" for less)
	@$(BIN)/python -m bench.run $(ARGS)

protos: env ## Generate broker/ottla/pb from proto/
	@$(BIN)/python scripts/generate_protos.py

requests: env ## Generate broker/ottla/api/requests.py from Kafka's schemas
	@$(BIN)/python scripts/generate_requests.py

crds: env ## Generate crds/ and the chart's copies from the operator's models
	@$(BIN)/python scripts/generate_crds.py

docs: env ## Generate CONFIG.md
	@$(BIN)/python -m ottla.config.document

lock: env ## Pin requirements/*.txt from pyproject.toml, with the newest versions
	@$(BIN)/python scripts/lock.py

images: env ## Build the images of broker, operator and Spark, and load them into the local cluster (ARGS="broker" for one)
	@archives=$$($(BIN)/python scripts/images.py $(ARGS)) && $(CLUSTER) load $$archives

cluster-up: env ## Start a Kubernetes with three nodes in three zones, or find the one that KUBECONFIG names
	@$(CLUSTER) up

cluster-down: env ## End it and undo what it did to this machine
	@$(CLUSTER) down

cluster-env: env ## Print the exports that let kubectl and helm talk to it, for `eval`
	@$(CLUSTER) env

clean: ## Remove the environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis bench/out broker/ottla/_compiled
