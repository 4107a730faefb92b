# Everything runs through make. `run` and `test` do all the set-up themselves: Python 3.11 or newer and make are enough.

# The first Python that is new enough; make PYTHON=/path/to/python takes another.
OK := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$python $(OK) 2>/dev/null && echo $$python && exit; done; echo python3)
VENV := .venv
BIN := $(VENV)/bin
# Stamps of what is installed; pyproject.toml says what that is.
RUNNABLE := $(VENV)/.runnable
TESTABLE := $(VENV)/.testable
# Stay quiet about what went well.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help run test test-pod check format proto chart bench bench-peers clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(RUNNABLE) ## set up, then run Envoy and the sidecar: the demo on http://127.0.0.1:8080, or CONFIG=FILE (ARGS for more options)
	@exec $(BIN)/zurelay up $(if $(CONFIG),--config $(CONFIG)) $(ARGS)

test: $(TESTABLE) ## set up, then run all tests; TESTS=tests/test_plan.py runs some
	$(BIN)/pytest -n 2 --dist loadfile $(TESTS)

test-pod: $(TESTABLE) ## build the image and live one pod's life with podman; needs root and Debian, or says why it is left out
	$(BIN)/pytest --timeout=420 tests/pod/lifecycle.py

check: $(TESTABLE) ## find mistakes: ruff, its formatter, mypy; and whether requests and chunks still cost what they did
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m bench.guard

format: $(TESTABLE) ## write the code as the formatter wants it, and fix what can be fixed safely
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: $(TESTABLE) ## make the protobuf stubs again from proto/
	$(BIN)/python proto/generate.py

chart: $(TESTABLE) ## make the Helm chart's table of values and golden renders again
	$(BIN)/python -m tools.chart

bench: $(TESTABLE) ## measure it beside Envoy alone and its peers: ten minutes (ARGS=--quick: one, without peers)
	$(BIN)/python -m bench $(ARGS)

bench-peers: $(TESTABLE) ## install LiteLLM and Portkey, to be measured beside it
	$(BIN)/python -m bench.peers

clean: ## remove what was made: the environment, caches
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist service/*.egg-info
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

$(RUNNABLE): pyproject.toml
	@$(PYTHON) $(OK) 2>/dev/null || { echo "Python 3.11 or newer is needed." \
	  "On Debian 12, Ubuntu 24.04 or newer: apt-get install python3 python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Python's venv module is incomplete: apt-get install $(notdir $(PYTHON))-venv" >&2; exit 1; }
	@echo "installing into $(VENV) ..." >&2
	@$(PIP) --upgrade 'pip>=25.1'
	@$(PIP) --editable '.[local]'
	@touch $@

$(TESTABLE): $(RUNNABLE)
	@$(PIP) --group dev
	@touch $@
