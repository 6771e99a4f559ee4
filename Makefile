# Two commands do everything: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
BENCH_VENV := .venv-bench

.PHONY: setup demo test lint types bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,dev]'
	touch $(STAMP)

demo: setup
	$(VENV)/bin/discreet demo

test: setup
	$(VENV)/bin/python -m pytest -n 2 $(ARGS)

lint: setup
	$(VENV)/bin/ruff check .

types: setup
	$(VENV)/bin/mypy

# make bench NAME=noise ARGS="--draws 100000": an environment of its own, with the peers that benchmark compares with
bench:
	@test -n "$(NAME)" || { echo 'say which: make bench NAME=noise ($(basename $(notdir $(wildcard benchmarks/*.py))))'; exit 2; }
	test -d $(BENCH_VENV)-$(NAME) || $(PYTHON) -m venv $(BENCH_VENV)-$(NAME)
	$(BENCH_VENV)-$(NAME)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all]'
	if [ -f benchmarks/peers/$(NAME).txt ]; then $(BENCH_VENV)-$(NAME)/bin/python -m pip install --quiet --disable-pip-version-check --requirement benchmarks/peers/$(NAME).txt; fi
	$(BENCH_VENV)-$(NAME)/bin/python benchmarks/$(NAME).py $(ARGS)

clean:
	rm -rf $(VENV) $(BENCH_VENV)-* demo-output
