# The only task entry of the repository: `make help` lists what it can do.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(name))))
BIN := .venv/bin
STAMP := .venv/.installed
AGENTS := .agents/.installed
OFFLINE := .venv/.offline
# Programs that some tests need, as `program:Debian package`; a test whose program is missing is skipped.
PROGRAMS := gcc:gcc g++:g++ gfortran:gfortran bwrap:bubblewrap shellcheck:shellcheck curl:curl valgrind:valgrind perf:linux-perf
PROGRAMS += sbatch:slurm-wlm munged:munge ip:iproute2
# Of clang's headers, those that HIP needs beside the packages of `make setup-gpu`.
CLANG_HEADERS := libclang-common-19-dev
CLANG_WRAPPER := /usr/lib/llvm-*/lib/clang/*/include/__clang_hip_runtime_wrapper.h
PYTEST := $(BIN)/python -m pytest
# One more than there are cores: many tests wait for other processes.
WORKERS ?= $(shell expr $$(nproc) + 1)
# Tests that between them call every dependency.
LEANING := router judge_access cli merge mcp search statistics inputs cluster_layers agent_parts task
TIMED = $(shell grep -l 'pytest.mark.timing' tests/test_*.py)
# Hundreds of short-lived Python processes: without this each of them compiles the same modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup setup-agents setup-gpu system demo demo-claude test test-slurm test-lowest validate exploits torture
.PHONY: lint bench docs clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv with everything that the demo and the tests need

$(STAMP): pyproject.toml
	@if [ -z "$(PYTHON)" ] || ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
		echo "error: Kernelcourt needs Python 3.11 or newer; install python3, or say make PYTHON=/path/to/python3" >&2; exit 1
	fi
	if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then
		echo "error: $(PYTHON) has no venv module; on Debian: apt-get install python3-venv" >&2; exit 1
	fi
	echo "setting up .venv with $$($(PYTHON) --version)"
	$(PYTHON) -m venv .venv
	# Setuptools warns of every editable installation.
	export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PYTHONWARNINGS=ignore
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[judge]' --group test --group fuzz --group lint
	touch $(STAMP)
	echo "installed; to have kcourt on your path, say: export PATH=$(CURDIR)/.venv/bin:\$$PATH"

setup-agents: $(AGENTS) ## Install the coding clients that Kernelcourt drives, at pinned versions, into .agents

# Of all install scripts only the one that puts the client's program in its place is run.
$(AGENTS): containers/agents/package.json containers/agents/package-lock.json
	@for program in node npm; do
		if ! command -v $$program >/dev/null; then
			echo "error: $$program not found; the clients need node 18 or newer, and npm (on Debian: apt-get install nodejs npm)" >&2; exit 1
		fi
	done
	mkdir -p .agents
	cp $^ .agents/
	# node trusts a list of its own; a site's own authorities are in the system's.
	export NODE_EXTRA_CA_CERTS="$${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}"
	npm ci --prefix .agents --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	node .agents/node_modules/@anthropic-ai/claude-code/install.cjs
	echo "installed in .agents: $$(.agents/node_modules/.bin/claude --version), $$(.agents/node_modules/.bin/codex --version 2>/dev/null)"
	touch $(AGENTS)

setup-gpu: $(OFFLINE) ## Install compilers for GPUs that need not be here (1.8 GB) into .venv

$(OFFLINE): $(STAMP)
	@export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PYTHONWARNINGS=ignore
	$(BIN)/python -m pip install --quiet --editable '.[offline]'
	if ! compgen -G '$(CLANG_WRAPPER)' >/dev/null; then
		if [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
			apt-get update -qq >/dev/null || true
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(CLANG_HEADERS) >/dev/null || true
		fi
		compgen -G '$(CLANG_WRAPPER)' >/dev/null \
			|| echo "warning: clang's headers for HIP were not found (on Debian: $(CLANG_HEADERS)); AMD's targets are skipped" >&2
	fi
	touch $(OFFLINE)
	echo "installed the compilers for GPUs"

# Installs the programs of PROGRAMS where this user may (root on Debian); says what is missing otherwise.
system:
	@missing=()
	PATH=$$PATH:/usr/sbin:/sbin
	for pair in $(PROGRAMS); do
		command -v "$${pair%%:*}" >/dev/null || missing+=("$${pair##*:}")
	done
	if [ "$${#missing[@]}" -eq 0 ]; then
		exit 0
	elif [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
		echo "installing $${missing[*]}"
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq >/dev/null || true
		# One at a time: a name that another release does not know must not keep the others away.
		for package in "$${missing[@]}"; do
			apt-get install -y -qq --no-install-recommends "$$package" >/dev/null \
				|| echo "warning: $$package could not be installed; the tests that need it are skipped" >&2
		done
	else
		echo "warning: $${missing[*]} not found; the tests that need them are skipped" >&2
	fi

demo: setup ## Run a whole study on this machine: two judges, scripted agents, a table, a report
	@command -v gcc >/dev/null || { echo "error: the demo compiles C; install gcc (on Debian: apt-get install gcc)" >&2; exit 1; }
	$(BIN)/kcourt demo

demo-claude: setup setup-agents ## Run a study of three kernels by real Claude Code, whose model follows a script
	@command -v gcc >/dev/null || { echo "error: the demo compiles C; install gcc (on Debian: apt-get install gcc)" >&2; exit 1; }
	$(BIN)/python -m tests.demo_claude

test: setup system ## Run every test but the slow ones: lint and the parallel ones first, then those that measure time, alone
	@failed=0
	$(PYTEST) -n $(WORKERS) --dist loadgroup -m 'not timing and not slow' || failed=$$?
	echo
	echo "Tests that measure time, one at a time:"
	$(PYTEST) -m 'timing and not slow' $(TIMED) || failed=$$?
	exit $$failed

test-slurm: setup system ## Run all tests that need a Slurm cluster, the slow ones too; needs root
	@$(PYTEST) -m slurm

test-lowest: setup ## Run what leans on dependencies, with the lowest version of each that pyproject.toml allows
	@mkdir -p .scratch
	$(BIN)/python tests/lowest.py > .scratch/lowest.txt
	$(BIN)/python -m venv --clear .scratch/lowest
	export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PYTHONWARNINGS=ignore
	.scratch/lowest/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.scratch/lowest/bin/python -m pip install --quiet -c .scratch/lowest.txt --editable '.[judge]' --group test
	.scratch/lowest/bin/python -m pytest -q -n $(WORKERS) $(LEANING:%=tests/test_%.py)

validate: setup system ## Validate every kernel with all its controls and mutants, in HIP for the emulator and for a GPU
	@$(BIN)/kcourt task validate all --allow-sandbox limits

exploits: setup system ## Grade every submission that cheats, and every odd one that does not, with a control among them
	@$(BIN)/python -m tests.trials

torture: setup system ## Kill and stop parts of judges 1,000 times under load, and account for every grade
	@$(BIN)/python -m tests.torture --kills 1000

lint: setup system ## Run ruff, mypy, import-linter, shellcheck and the figures of the code
	@$(PYTEST) tests/test_house.py

bench: setup ## Measure the speed goals; prints a table and JSON
	@$(BIN)/python -m tests.benchmarks

docs: setup ## Write what docs/ takes from the code and the measurements; draw its pictures
	@for program in generate figures pictures; do $(BIN)/python docs/$$program.py; done

clean: ## Remove what the other targets made (.venv, .scratch, caches)
	@rm -rf .venv .agents .scratch .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist ./*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.ONESHELL:
