# `make demo` and `make test` do all the set-up on a fresh machine. Needs Python 3.11 or newer with venv, and make.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test lint bench real faults clean

# Stamps of what is installed: the demo needs less than the tests. Each is made again when a requirement changes.
$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer with venv found (Debian: apt install python3-venv; or PYTHON=...)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet "pip>=25.1"
	touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml constraints.txt
	$(PIP) install --quiet -c constraints.txt -e ".[demo]"
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) install --quiet -c constraints.txt --group dev
	touch $@

demo: $(VENV)/.demo
	$(BIN)/specconsole demo

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Compiled first: hundreds of consoles are started, and where Python is told to write no byte code each would compile anew.
test: $(VENV)/.dev lint
	$(BIN)/python -m compileall -q -j 2 specconsole tests benchmarks
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Long fault-injection rounds: broken links, killed consoles.
faults: $(VENV)/.dev
	SPECCONSOLE_FAULT_ROUNDS=1000 $(BIN)/python -m pytest -m faults

# Everything that talks to a real server: llama.cpp here, vLLM and SGLang in environments of their own (docs/real-engines.md).
real: $(VENV)/.dev
	PYTHON=$(PYTHON) tests/engines/support/install.sh vllm .venv-vllm
	PYTHON=$(PYTHON) tests/engines/support/install.sh sglang .venv-sglang
	$(BIN)/python -m pytest -p tests.engines.tables -n 2 --dist loadfile --durations 30 -m "real or engines"

bench: $(VENV)/.dev
	for program in benchmarks/[a-z]*.py; do echo "== $$program"; $(BIN)/python $$program || exit 1; done

clean:
	rm -rf $(VENV)
