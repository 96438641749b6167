# Two commands do everything a newcomer needs: `make reproduce` and `make test`. Each makes .venv by itself. A third, `make data`, brings public data for the first.
.PHONY: help data reproduce matrix test test-all quick test-nli notebooks bench lock clean
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
# Bytecode is kept even where the shell says otherwise: tests and experiments start many processes, each of which would compile its packages anew.
RUN := env -u PYTHONDONTWRITEBYTECODE PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
# Four workers for two cores: tests often wait, for servers, other processes and deadlines.
PYTEST := $(RUN) python -m pytest -n 4 --dist worksteal
ROOM ?=

help: ## show this
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-11s %s\n", $$1, $$2}'

# The environment: pinned by the lock and its hashes, filled by uv where it is there or can be installed, else by pip.
$(VENV)/ready: requirements.lock tests/weights.txt pyproject.toml settings.ini setup.py
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh tests/make_venv.sh

reproduce: $(VENV)/ready ## run the main job: experiments, figures, outputs/index.html
	@$(RUN) factlib reproduce outputs

data: $(VENV)/ready ## bring all public data into data/public (some 70 MB, with JudgeMemo 160 to 300; asks before what is not for commercial use): make data MORE="--except judgememo"
	@$(RUN) factlib fetch all $(MORE)

matrix: $(VENV)/ready ## fill the matrix, every evaluator on every benchmark (a quarter of an hour; again: seconds); with a model: make matrix MORE="-p model NAME"
	@$(RUN) factlib run trust_matrix --if-changed --out outputs/trust_matrix $(MORE)

test: $(VENV)/ready ## run the tests: notebooks, pytest, sync of exports and README (some minutes)
	@$(PYTEST) -m "not slow"

test-all: $(VENV)/ready ## run these and the slow ones: the main job, embedded model, kill -9, real data where FACTLIB_DATA is set, the wheel
	@$(PYTEST)

# The tests of a room: those that are called after it, or else all of its folder; a room at the top has those of the whole house.
BESIDE = tests/$(dir $(ROOM))test_$(notdir $(ROOM))
TESTS = $(or $(wildcard $(BESIDE).py $(BESIDE)_*.py),$(if $(findstring /,$(ROOM)),$(wildcard tests/$(dir $(ROOM))test_*.py)))
quick: $(VENV)/ready ## run one room: its notebook, its tests, the sync of its export: make quick ROOM=evaluators/claims/dovescore
	@test -f "nbs/$(ROOM).ipynb" || { echo "make quick: name a room, such as ROOM=evaluators/claims/dovescore; there is no nbs/$(ROOM).ipynb" >&2; exit 2; }
	@$(RUN) python -m pytest -m "not slow" --room "$(ROOM)" "tests/test_notebooks.py::test_notebook[$(ROOM)]" $(TESTS) tests/test_house.py::test_exports_and_notebooks_are_in_sync

test-nli: ## test the models of language inference, with torch in an environment of its own (some minutes; not part of `make test`)
	@PYTHON="$(PYTHON)" bash .ci/nli

notebooks: $(VENV)/ready ## for developers: export, run and clean all notebooks, make the README and its picture
	@$(RUN) sh tests/refresh_notebooks.sh

bench: $(VENV)/ready ## measure: what the live layer, ROUGE, the manipulations and JudgeMemo cost, surprisal of recorded documents, what intervals keep of their promise, what the matrix finds where there is nothing (idle machine, an hour)
	@for b in benchmarks/*.py; do echo "== $$b"; $(RUN) python $$b || exit 1; done

lock: $(VENV)/ready ## for developers: bring the pinned versions up to date
	@$(RUN) uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --extra notebooks --extra scale --extra dev --extra local pyproject.toml --output-file requirements.lock

clean: ## remove the environment and the outputs (not the gallery)
	rm -rf $(VENV) build *.egg-info .pytest_cache .hypothesis
	find outputs -mindepth 1 -maxdepth 1 ! -name gallery -exec rm -rf {} +
