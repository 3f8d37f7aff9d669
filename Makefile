# make finetune   set up .venv, fetch the embedded model, run the main job
# make test       the whole test suite; FAST=1 leaves out what takes minutes
# make lint       style, types, and the arrows between the rooms
# make docs       the documents as a site that opens offline, site/index.html
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: finetune test lint docs setup

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "torch>=2.11,<2.14"
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

# A finished run is shown again, a run that was cut short goes on.
finetune: setup
	$(BIN)/python -m lab.finetune configs/smollm2_lora.yaml resume=true

test: setup
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile $(if $(FAST),-m "not slow")

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
