# The same commands for people and for CI. `make help` lists them.
SHELL := /bin/bash
PYTHON_RUN := .venv/bin/python
NAME ?= failover
# Most tests wait for servers: twice as many at a time as there are processors.
WORKERS ?= $(shell expr 2 \* $$(nproc))
PARTS ?= versions mutants cuts upgrade controller endpoint spark sandbox planner chart benchmarks seeds examples stalls matrix demo
export PYTHONUNBUFFERED := 1
# A Regent, and each worker of the tests, starts in half the time when bytecode is kept.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo demo-cluster test unit matrix soak soak-seeds soak-examples soak-stalls soak-matrix soak-demo simulate check lint generate check-generated bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

setup: ## install the locked Python dependencies into .venv
	@scripts/setup

demo: setup ## Kubernetes API, ZooKeeper, three brokers and Regent on this machine (ONCE=1: round trip and stop)
	@$(PYTHON_RUN) -m sandbox.demo $(if $(ONCE),--once)

demo-cluster: setup ## the same in pods: a cluster of one node, Regent installed by Helm (as root; ONCE=1)
	@$(PYTHON_RUN) -m sandbox demo-cluster $(if $(ONCE),--once)

test: setup ## all tests (the first time also builds the Kubernetes API: some minutes)
	@$(PYTHON_RUN) -m sandbox build --all-kafka --kubernetes
	@PYTHONPATH=spark_tasks $(PYTHON_RUN) -m regent_rebalance.compile_ahead
	@$(PYTHON_RUN) -m pytest -n $(WORKERS) --durations=40 --durations-min=20 $(ARGS)

unit: setup ## the tests that need no servers
	@$(PYTHON_RUN) -m pytest -n $(shell nproc) -m "not integration" $(ARGS)

matrix: setup ## the flows on brokers of five versions: [VERSIONS="2.4.1 3.9.1"] [FLOWS="crash"] [KILLS=50] [PROTOCOL=default] [SEED=7]
	@$(PYTHON_RUN) -m sandbox build --all-kafka
	@$(PYTHON_RUN) -m tests.matrix $(if $(VERSIONS),--versions $(VERSIONS)) \
		$(if $(FLOWS),--flows $(FLOWS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(KILLS),--kills $(KILLS)) \
		$(if $(PROTOCOL),--inter-broker-protocol $(PROTOCOL))

soak: ## what the gate leaves out, or a part of it: [PARTS="versions cuts"] (CONTRIBUTING.md)
	@grep '^| part ' CONTRIBUTING.md; for part in $(PARTS); do grep "^| .$$part. " CONTRIBUTING.md; done
	@$(MAKE) --keep-going $(addprefix soak-,$(PARTS))

soak-seeds: setup
	@$(MAKE) simulate SEEDS=400

soak-examples: setup
	@$(PYTHON_RUN) -m pytest -n $(shell nproc) -m "not integration" --hypothesis-profile=soak tests/unit $(ARGS)

soak-matrix: matrix

soak-stalls: setup
	@$(PYTHON_RUN) -m sandbox build --all-kafka --kubernetes
	@$(PYTHON_RUN) -m pytest -n $(WORKERS) --stalls=$(or $(SEED),1) $(ARGS)

soak-demo: setup
	@$(PYTHON_RUN) -m pytest -n $(WORKERS) --soak=demo $(ARGS)
	@$(MAKE) demo-cluster ONCE=1

soak-%: setup
	@$(PYTHON_RUN) -m sandbox build --all-kafka --kubernetes
	@$(PYTHON_RUN) -m pytest -n $(WORKERS) --soak=$* $(ARGS)

simulate: setup ## the simulation with many seeds: [SEEDS=100] [STEPS=...] [SEED=first]
	@$(PYTHON_RUN) -m tests.simulation --keep-going --seeds $(or $(SEEDS),100) \
		$(if $(STEPS),--steps $(STEPS)) $(if $(SEED),--seed $(SEED))

check: setup ## two minutes: style, types and the closest tests of what differs from HEAD [SINCE=main] [SECONDS=60]
	@$(PYTHON_RUN) -m scripts.check_change --since $(or $(SINCE),HEAD) --seconds $(or $(SECONDS),60)

lint: setup ## style, types, direction of imports, spelling, wording
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports
	@.venv/bin/codespell
	@$(PYTHON_RUN) scripts/check_words.py

generate: setup ## write everything that is generated from the code
	@$(PYTHON_RUN) scripts/generate.py

check-generated: setup ## fail if something generated is out of date
	@$(PYTHON_RUN) scripts/generate.py --check

bench: setup ## a benchmark beside Kafka's own controller: NAME=failover [SIZE=10000] [ONLY=regent]
	@$(PYTHON_RUN) -m benchmarks $(NAME) $(if $(SIZE),--size $(SIZE)) $(if $(ONLY),--only $(ONLY))

clean: ## remove what setup and the tools have made here (caches of the sandbox stay)
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
