# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench real faults clean

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[demo]" --group dev
	touch $@

demo: $(VENV)/.ready
	$(BIN)/specconsole demo

lint: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(VENV)/.ready lint
	$(BIN)/python -m pytest

faults: $(VENV)/.ready
	$(BIN)/python -m pytest -m faults

bench: $(VENV)/.ready
	for program in benchmarks/[a-z]*.py; do $(BIN)/python $$program || exit 1; done

clean:
	rm -rf $(VENV)
