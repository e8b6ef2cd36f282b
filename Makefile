# The two commands: `make demo` and `make test`. Everything else is `podeval --help`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SPEECH := $(VENV)/share/podeval/speech
SERVE ?= 1
PORT ?= 7860

TOOLS := $(VENV)/share/podeval/release-tools
TYPES := $(VENV)/share/podeval/mypy.txt
# Written if tests ran and failed, and nothing else did: .ci/run repeats them then.
OUTCOME := $(VENV)/share/podeval/tests-outcome
COVERAGE := $(VENV)/share/podeval/coverage.json
TOOL_PACKAGES := uv==0.13.9 pip-audit==2.10.1 cyclonedx-bom==7.5.0
TOOLS_LOCK := tests/packaging/tools.lock
DEPLOYED := embedded space postgres
DEPLOYED_LOCKS := space/build.lock space/torch.lock space/requirements.lock
# What is installed is what a lock says, file by file; what has to be built is built by what build.lock brought.
INSTALL = $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation

# Tests share what they have computed, and no other run's. Many start a Python, which compiles podeval once and not each time.
# Four tests run side by side on two cores (tests/forked_processes.py), for many wait for a browser or a server; a second
# thread would only wait for a core.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 PODEVAL_THREADS=1 PODEVAL_CACHE=$(CURDIR)/$(VENV)/share/podeval/test-cache $(BIN)/pytest
TESTS = $(PYTEST) --processes 4

.PHONY: demo test retest test-all lint types environment test-environment reference-packages bench docs lock sbom audit release-check newest clean help

help:
	@echo "make demo [SERVE=0] [PORT=7860]  make the environment, evaluate two systems, serve the board"
	@echo "make test                        make the environment, run lint, types and the tests"
	@echo "make retest                      run the tests that failed last, one after the other"
	@echo "make test-all                    every test, the long ones too, the audit and the release checks"
	@echo "make bench [LONG=3]              write side-by-side speed ratios into docs/studies/speed.md; a podcast, memory and time of so many hours too"
	@echo "make docs                        build the pages of docs/ as a site in site/"
	@echo "make lock                        resolve what is installed anew, with hashes"
	@echo "make sbom audit                  list what is installed with licences, ask for known vulnerabilities"
	@echo "make release-check               build, install in a clean environment, use, resolve every extra"
	@echo "make newest                      try the newest gradio, transformers and datasets"
	@echo "make clean                       remove the environment and the demo's results"

demo: environment
	@$(BIN)/podeval demo --out .demo/runs --port $(PORT) $(if $(filter 0,$(SERVE)),--no-serve)

test: test-environment reference-packages
	@tests/debian-packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p $(VENV)/share/podeval; $(BIN)/mypy > $(TYPES) 2>&1 & types=$$!; \
	$(TESTS); tests=$$?; wait $$types; types=$$?; cat $(TYPES); \
	[ "$$tests$$types" = 10 ] && echo "tests failed, types right" > $(OUTCOME); exit $$((tests | types))

# The tests that failed last, one after the other.
retest:
	$(PYTEST) --last-failed --last-failed-no-failures none

# The audit is last, so that its verdict is what one reads: it may be that there were no advisories to compare with.
test-all: test-environment reference-packages release-check
	@tests/debian-packages
	$(TESTS) -m "long or not long" --cov --cov-report= --cov-report=json:$(COVERAGE)
	@echo "$(BIN)/python studies/coverage_by_room.py $(COVERAGE) writes its table into tests/coverage_by_room.md"
	@$(MAKE) --no-print-directory audit

environment: $(VENV)/.made
test-environment: $(VENV)/.made-for-tests

# torch apart, when all that it needs is there: its build for CPUs has an index of its own.
$(VENV)/.made: pyproject.toml $(DEPLOYED_LOCKS) baselines.lock benchmark/podeval/models/weights_lock.json
	@echo "Making the environment in $(VENV) (about 3 GB, 2 to 4 minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --require-hashes --requirement space/build.lock
	@$(INSTALL) --require-hashes --requirement space/requirements.lock --requirement baselines.lock
	@tests/packaging/install-torch $(BIN)/python
	@$(INSTALL) --editable .
	-@$(BIN)/podeval models install --profile embedded
	-@$(BIN)/podeval models install --profile baselines
	@touch $@

$(VENV)/.made-for-tests: $(VENV)/.made dev.lock
	@$(INSTALL) --require-hashes --requirement dev.lock
	@touch $@

reference-packages:
	@tests/reference-packages $(BIN)/python $(VENV)/share/podeval/reference-packages

bench: export PODEVAL_BENCH = $(CURDIR)/$(VENV)/share/podeval/bench.jsonl
bench: export PYTHONDONTWRITEBYTECODE =
bench: test-environment reference-packages
	@rm -f $(PODEVAL_BENCH)
	$(BIN)/python studies/speed/speech.py $(SPEECH).wav
	$(BIN)/python studies/speed/import_time.py $(SPEECH).wav
	$(BIN)/python studies/speed/arena.py many
	$(BIN)/python studies/speed/loudness.py $(SPEECH).wav
	$(BIN)/python studies/speed/srmr.py $(SPEECH).wav
	$(BIN)/python studies/speed/dnsmos.py $(SPEECH).wav
	$(BIN)/python studies/speed/recording.py $(SPEECH).wav --text $(SPEECH).txt
	$(BIN)/python studies/speed/recording.py $(SPEECH).wav --text $(SPEECH).txt --seconds 30
	$(BIN)/python studies/speed/recording.py $(SPEECH).wav --text $(SPEECH).txt --clips 20
	$(BIN)/python studies/speed/score.py $(SPEECH).wav --text $(SPEECH).txt
	$(BIN)/python studies/speed/rewrites.py $(SPEECH).wav
	$(BIN)/python studies/speed/pitch_in_a_box.py
	@$(BIN)/python studies/speed/table.py $(PODEVAL_BENCH) | tee docs/studies/speed.md
	$(if $(LONG),$(BIN)/python studies/speed/podcast.py make $(SPEECH)-long.wav --minutes 60)
	$(if $(LONG),$(BIN)/python studies/speed/podcast.py measure $(SPEECH)-long.wav)
	$(if $(LONG),$(BIN)/python studies/speed/long_recording.py $(SPEECH).wav --hours $(LONG))

docs: test-environment
	$(BIN)/python -m podeval.cli.generate_docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(TOOLS)/.made: $(TOOLS_LOCK)
	@$(PYTHON) -m venv --clear $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet --no-deps --only-binary :all: --require-hashes --requirement $(TOOLS_LOCK)
	@touch $@

# Every lock has what those before it lack. Where pip finds torch in a folder, so does this.
BEYOND = $$(sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p'
lock: $(TOOLS)/.made
	@printf 'hatchling\npip\nsetuptools\n' | $(TOOLS)/bin/uv pip compile - $(LOCKING) --output-file space/build.lock
	$(TOOLS)/bin/uv pip compile pyproject.toml $(addprefix --extra ,$(DEPLOYED)) $(LOCKING) --no-emit-package torch --output-file space/requirements.lock
	@tests/packaging/torch-lock $(TOOLS)/bin/uv $(LOCKING) > space/torch.lock.new && mv space/torch.lock.new space/torch.lock
	@rm -f baselines.lock dev.lock
	$(TOOLS)/bin/uv pip compile pyproject.toml --extra baselines --extra embedded $(LOCKING) $(BEYOND) space/*.lock) --output-file baselines.lock
	$(TOOLS)/bin/uv pip compile pyproject.toml --extra dev --extra embedded $(LOCKING) $(BEYOND) space/*.lock baselines.lock) --output-file dev.lock
	@printf '%s\n' $(TOOL_PACKAGES) | $(TOOLS)/bin/uv pip compile - $(LOCKING) --output-file $(TOOLS_LOCK)
	@grep -oE '[A-Za-z0-9_.-]+==[A-Za-z0-9.]+' tests/reference-packages | $(TOOLS)/bin/uv pip compile - --no-deps --python-version 3.12 \
		--generate-hashes --no-header --no-annotate --quiet --output-file tests/reference.lock

LOCKING = --constraint constraints.txt --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet \
	$(if $(PIP_FIND_LINKS),--find-links $(PIP_FIND_LINKS) --no-emit-find-links,--torch-backend cpu)

sbom: $(TOOLS)/.made
	$(TOOLS)/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-reproducible --of JSON -o sbom.json
	$(BIN)/python tests/packaging/licences.py sbom.json

audit: $(TOOLS)/.made
	@tests/packaging/audit $(TOOLS)/bin/pip-audit $(DEPLOYED_LOCKS) baselines.lock dev.lock $(TOOLS_LOCK)

release-check: test-environment
	$(BIN)/python tests/packaging/installed.py --with space --python $(PYTHON)
	$(BIN)/python tests/packaging/installed.py --extras
	$(BIN)/python tests/packaging/installed.py --resolve 3.11 3.12 3.13

# What is newest on the index beside what this environment has; a scheduled job runs it, and a failure names who broke what.
NEWEST = gradio transformers datasets huggingface_hub
newest: test-environment
	@rm -rf $(VENV)/share/podeval/newest && mkdir -p $(VENV)/share/podeval
	@$(PYTHON) -m venv $(VENV)/share/podeval/newest
	@$(VENV)/share/podeval/newest/bin/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	@$(VENV)/share/podeval/newest/bin/python -m pip install --quiet --editable ".[embedded,space,baselines,dev]" --upgrade $(NEWEST)
	@$(VENV)/share/podeval/newest/bin/python -m pip list --format freeze | grep -iE '^(gradio|transformers|datasets|huggingface_hub)='
	@echo "Held back by a bound of ours or of another package:"
	-@$(VENV)/share/podeval/newest/bin/python -m pip list --outdated | grep -iE '^(gradio|transformers|datasets|huggingface_hub) ' || echo "none"
	PODEVAL_MODELS=$(CURDIR)/$(VENV)/share/podeval/models $(VENV)/share/podeval/newest/bin/pytest tests/packaging/test_private_parts.py tests/space tests/datasets tests/hub

clean:
	rm -rf $(VENV) .demo site
