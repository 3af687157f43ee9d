# make run | test | space-check | lint | notebook | venv | clean. PORT=8000 make run picks another port, PYTHON=... the interpreter.

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --disable-pip-version-check

# A stamp's name holds the checksum of the requirements it stands for: same requirements, nothing to install.
RUN_STAMP := $(VENV)/.installed-run-$(firstword $(shell cksum < requirements.txt))
DEV_STAMP := $(VENV)/.installed-dev-$(firstword $(shell cat requirements.txt requirements-dev.txt | cksum))

.PHONY: run test space-check lint format screenshots load-check notebook port venv clean

run: port $(RUN_STAMP)
	$(if $(PORT),GRADIO_SERVER_PORT='$(PORT)') $(PY) app.py

# Before minutes of installing, not after.
port:
	@[ -z "$$PORT" ] || { [ "$$PORT" -ge 1 ] && [ "$$PORT" -le 65535 ]; } 2>/dev/null || \
	    { echo "PORT is '$$PORT'; allowed: a number from 1 to 65535" >&2; exit 2; }

test: $(DEV_STAMP)
	$(PY) -m pytest $(ARGS)

# As a Hugging Face Space would: ARGS="-k link" picks browser tests, PYTHON another interpreter.
space-check: $(DEV_STAMP)
	$(PY) -m tests.app.space_check

lint: $(DEV_STAMP)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy -p core -p analysis -p app

format: $(DEV_STAMP)
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

screenshots: $(DEV_STAMP)
	$(PY) -m pytest -q tests/app/browser/screenshots.py

load-check: $(DEV_STAMP)
	$(PY) -m tests.app.load $(ARGS)

notebook: $(DEV_STAMP)
	$(PIP) -q nbclient ipykernel kaleido
	PLOTLY_RENDERER=png $(VENV)/bin/jupyter execute --inplace assets/entropyscope.ipynb

venv: $(RUN_STAMP)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@for python in $(or $(PYTHON),python3 python3.12 python3.11); do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null; then \
	        echo "Creating $(VENV) with $$("$$python" --version)"; \
	        "$$python" -m venv --clear $(VENV) && exit 0; \
	        rm -rf $(VENV); exit 1; \
	    fi; \
	done; \
	echo "Python 3.11 or 3.12 is needed and none was found; name one with PYTHON=/path/to/python3.12 make" >&2; \
	exit 1

$(RUN_STAMP): $(PY)
	@$(PY) -m pip --version >/dev/null 2>&1 || { echo "$(VENV) is incomplete; run make clean, then again" >&2; exit 1; }
	$(PIP) -r requirements.txt
	@rm -f $(VENV)/.installed-run-*
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	$(PIP) -r requirements-dev.txt
	@rm -f $(VENV)/.installed-dev-*
	@touch $@
