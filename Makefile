# every target works on a fresh machine with python 3.11 or newer; `make` alone lists them
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo crashes pictures test again lint check lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## build .venv, so that .venv/bin/clawback runs

$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("clawback needs python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

demo: install ## play the story on the sandbox; at a terminal its page stays open afterwards
	@if [ -t 0 ] && [ -t 1 ]; then exec $(BIN)/clawback demo; else exec $(BIN)/clawback demo --once; fi

pictures: install ## renew docs/pictures from the story, played once (needs chromium)
	$(BIN)/python -m sandbox.story_pictures docs/pictures

crashes: install ## strike every process at every event of a change, and compare with a calm run: some hours
	$(BIN)/python -m sandbox.crashes --all --table docs/crash-matrix.md

# tests wait for services more than they compute: four workers on two cores; a file is played by one worker in its order
PARALLEL := -n 4 --dist loadfile --no-loadscope-reorder

# which tests failed is remembered, so that `make again` can play those alone
REMEMBER := -o addopts="-q --strict-markers --strict-config"

# what pytest compiled is kept also where the environment says otherwise: each worker would compile all of it again
test: export PYTHONDONTWRITEBYTECODE :=
test: install ## every test, with real servers
	$(BIN)/pytest $(PARALLEL) $(REMEMBER)

again: install ## the tests that failed last, one after the other
	$(BIN)/pytest $(REMEMBER) --last-failed

lint: install ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

check: lint ## lint, and the tests that need no servers
	$(BIN)/pytest tests/house tests/policies tests/bot -m "not real"

lock: ## renew requirements/*.txt (needs pip-tools)
	pip-compile -q --upgrade --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --strip-extras --allow-unsafe -o requirements/runtime.txt pyproject.toml
	pip-compile -q --upgrade --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --strip-extras --allow-unsafe --extra sandbox --extra test -c requirements/runtime.txt -o requirements/dev.txt pyproject.toml requirements/build.in
	pip-compile -q --upgrade --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --strip-extras --allow-unsafe -c requirements/runtime.txt -o requirements/build.txt requirements/build.in

clean: ## remove what install made
	rm -rf $(VENV)
