# Everything here works where Python 3.10 or newer, make and a package index are; nothing is installed by hand.
# ARGS are passed on: make test ARGS="-k sampling".

ENVIRONMENT = python3 scripts/environment.py

# The pure core, of which the tests must reach each branch.
PURE = checks endpoint event reasons retrieval sampling scrub privacy marks spans strict assembly/* conventions/*
EMPTY :=
COMMA := ,
PURE_FILES = $(subst $(EMPTY) ,$(COMMA),$(foreach module,$(PURE),*/seer_otel/$(module).py))

# Files that say, for the type checker, how the public names are used.
TYPED_TESTS = $(wildcard tests/typing tests/typing*.py tests/test_typing*.py)

# The labelled sets that the default evaluator is fitted on.
EVAL ?= ../shared/eval

.PHONY: help test lint format demo bench fuzz reliability fit pins clean

help:
	@echo "make demo    a traced application, its events and their evaluation, all on this machine;"
	@echo "             its backend goes on until Ctrl-C: make demo ARGS=--once ends after the table"
	@echo "make test    all tests but the end-to-end ones, against the built wheel, on the newest Python here"
	@echo "make lint    ruff and mypy"
	@echo "make format  lets ruff repair and format"
	@echo "make bench   the measurements, in ten minutes; make bench ARGS='--only hooks,send' is some of them"
	@echo "make fuzz    hostile and giant spans, in a quarter of an hour; make fuzz ARGS='--only readers' is some of it"
	@echo "make reliability"
	@echo "             the fault tests, in about three minutes; writes what they find to docs/reliability.md"
	@echo "make fit     fits the default evaluator on the labelled sets in EVAL=FOLDER, in a few minutes; writes its model"
	@echo "             and its accuracy report; make fit ARGS=--check says whether they are as they would be written"
	@echo "make pins    writes constraints.txt anew: the newest versions that fit pyproject.toml"
	@echo "make clean   removes what these targets made"

test:
	@set -e; python=$$($(ENVIRONMENT) dev); \
	marks=$$($$python -c 'import sys; print("not e2e" + " and not frameworks" * (sys.version_info < (3, 11)))'); \
	$$python -m coverage run -m pytest -m "$$marks" $(ARGS); \
	if [ -z '$(ARGS)' ]; then \
		echo "Coverage of everything: $$($$python -m coverage report --format=total) %. Of the pure core, which must be complete:"; \
		$$python -m coverage report --include='$(PURE_FILES)' --fail-under=100; \
	fi

lint:
	@set -e; python=$$($(ENVIRONMENT) dev --without-wheel); \
	$$python -m ruff check .; \
	$$python -m ruff format --check .; \
	$$python -m mypy src/seer_otel $(TYPED_TESTS)

format:
	@set -e; python=$$($(ENVIRONMENT) dev --without-wheel); \
	$$python -m ruff check --fix-only .; \
	$$python -m ruff format .

demo:
	@set -e; python=$$($(ENVIRONMENT) demo); exec $$python examples/demo/run.py $(ARGS)

bench:
	@set -e; python=$$($(ENVIRONMENT) bench); exec $$python -m bench $(ARGS)

fuzz:
	@set -e; python=$$($(ENVIRONMENT) fuzz); exec $$python -m fuzz $(ARGS)

reliability:
	@set -e; python=$$($(ENVIRONMENT) dev); exec $$python -m pytest -m e2e tests/e2e/faults --write-table \
		--ignore=tests/e2e/faults/test_document.py $(ARGS)

fit:
	@set -e; python=$$($(ENVIRONMENT) fit --without-wheel); exec $$python scripts/fit_evaluator.py $(EVAL) $(ARGS)

pins:
	@python3 scripts/environment.py pins

clean:
	rm -rf .venvs .cache .hypothesis .seer-otel-demo build dist
