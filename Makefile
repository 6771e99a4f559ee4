# Two commands do everything: `make demo` and `make test`. Both set up .venv first; CONTRIBUTING.md names the others.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
BENCH_VENV := .venv-bench

.PHONY: setup demo test quick docs coverage mutants format lint types bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[all,dev]'
	touch $(STAMP)

demo: setup
	$(VENV)/bin/discreet demo

test: setup
	$(VENV)/bin/python -m pytest -n 2 --dist worksteal $(ARGS)

# modules are compiled when they are first loaded (half of the packages never is), and kept, also
# where the environment says otherwise: two thirds of collecting is compiling, once in each worker
docs test quick coverage: export PYTHONDONTWRITEBYTECODE =

# the site, in site/VERSION: the code of every page runs, links and references are checked
docs: setup
	$(VENV)/bin/python -m tools.site $(ARGS)

# a minute on two cores: every room with its sharpest checks; make test runs all
quick: setup
	$(VENV)/bin/python -m pytest -n 2 --dist worksteal -m "not slow" $(ARGS)

# branches of the trusted rooms that the tests reach; fails below the share that pyproject.toml names
coverage: setup
	$(VENV)/bin/python -m pytest -n 2 --cov --cov-report= $(ARGS)
	$(VENV)/bin/coverage report

# hand-made faults in the trusted rooms, each of which some test must notice: make mutants ARGS="noise --jobs 2"
mutants: setup
	$(VENV)/bin/python tests/mutants/run.py $(ARGS)

format: setup
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

lint: setup
	$(VENV)/bin/ruff format --check .
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
	rm -rf $(VENV) $(BENCH_VENV)-* demo-output build site
