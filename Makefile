# The two commands: `make demo` and `make test`. Everything else is `podeval --help`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := embedded,space,baselines
SERVE ?= 1
PORT ?= 7860

.PHONY: demo test lint types environment test-environment bench clean help

help:
	@echo "make demo [SERVE=0] [PORT=7860]  make the environment, evaluate two systems, serve the board"
	@echo "make test                        make the environment, run lint, types and every test"
	@echo "make bench                       print side-by-side speed ratios"
	@echo "make clean                       remove the environment and the demo's results"

demo: environment
	@$(BIN)/podeval demo --out .demo/runs --port $(PORT) $(if $(filter 0,$(SERVE)),--no-serve)

test: test-environment
	@tests/debian-packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PODEVAL_CACHE=$(CURDIR)/$(VENV)/share/podeval/test-cache $(BIN)/pytest -n 2 --dist loadfile

environment: $(VENV)/.made
test-environment: $(VENV)/.made-for-tests

# torch first and alone, pinned, so that no resolver brings another build of it.
$(VENV)/.torch: constraints.txt
	@echo "Making the environment in $(VENV) (about 3 GB, 2 to 4 minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	@touch $@

$(VENV)/.made: $(VENV)/.torch pyproject.toml constraints.txt benchmark/podeval/models/weights_lock.json
	@echo "Installing podeval and the embedded profile"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS)]"
	-@$(BIN)/podeval models install --profile embedded
	-@$(BIN)/podeval models install --profile baselines
	@$(BIN)/podeval metrics install
	@touch $@

$(VENV)/.made-for-tests: $(VENV)/.made
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS),dev]"
	@touch $@

bench: test-environment
	$(BIN)/python tests/performance/import_time.py
	$(BIN)/python tests/performance/loudness.py
	$(BIN)/python tests/performance/speech.py $(VENV)/share/podeval/speech.wav
	$(BIN)/python tests/performance/dnsmos.py $(VENV)/share/podeval/speech.wav --threads 1

clean:
	rm -rf $(VENV) .demo
