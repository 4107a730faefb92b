# Everything goes through here; each target sets up what it needs in .venv, from PyPI alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test check format proto bench clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | awk -F ':.*  ## ' '{ printf "  make %-8s %s\n", $$1, $$2 }'

run: $(VENV)/run.stamp  ## Serve the demo on 127.0.0.1:8080 (ARGS="--config FILE" for your own)
	@exec $(BIN)/zurelay up $(ARGS)

test: $(VENV)/dev.stamp  ## Run all tests, those through the real Envoy too (ARGS="tests/test_sse.py")
	$(BIN)/pytest -q -n 2 --dist loadfile $(ARGS)

check: $(VENV)/dev.stamp  ## Lint and type-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev.stamp  ## Put the sources in the house's layout
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: $(VENV)/dev.stamp  ## Regenerate the stubs from proto/
	$(BIN)/python proto/generate.py

bench: $(VENV)/dev.stamp  ## Measure (ARGS=--quick for a minute's worth)
	$(BIN)/python -m bench $(ARGS)

clean:  ## Remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis service/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pip.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "zurelay needs Python 3.11 or newer; $(PYTHON) is older. Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' \
		|| { echo "Python's venv module is missing: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/run.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/pip install --quiet --editable '.[local]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	$(BIN)/pip install --quiet --group dev
	@touch $@
