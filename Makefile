# make run    JupyterHub with the scheduler, on http://127.0.0.1:8000
#             (ENGINE=docker or swarm, CLUSTER=file, PORT=n, PASSWORD=text,
#             PROFILES=file: the profiles of the options form,
#             STORAGE=folder or http://namenode:9870 with STORAGE_USER=account,
#             ADMIN='names of administrators', SESSIONS=file with what holds for notebook servers,
#             CONFIG=the Hub's configuration (the default: hub_config/jupyterhub_config.py),
#             SCHEDULER=file with the scheduler's settings (the default: hub_config/scheduler.yaml),
#             SCHEDULER_OPTIONS='--start-empty': more for pai-scheduler)
#             (ENGINE=swarm REGISTRY=registry.lab:5000: brings its images to every machine of the Swarm)
# make doctor what keeps jobs from running, here and on every node of a Swarm, and what keeps the Hub from serving its
#             users, and what to do (with the words of make run)
# make runtime  the image with which one logs into tasks in Docker (make run ENGINE=docker builds it too)
# make check  style, types, and the tests that start no daemon: some minutes
# make test   what one needs to trust a change: the tests, with all they need (the drills in a short form)
# make test-all  the same with every drill, the fuzzing and all the odd images at full length
# make coverage  which lines and branches of the product the tests of `make check` run (COVERED='not long': those of
#             `make test`)
# make bench  how fast everything is, beside its peers in the same run: half an hour on a quiet machine
#             (BENCH='--only turnover': one suite); make bench-short: seconds, shows only that outcomes are right
# make lint   style, types, and who may import whom
# make docs   the pages of docs/ that are made from the schema, the tables and the parsers
# make lock   constraints.txt, the version of each Python package that the others install (LOCK= : the newest)

# the first Python that is new enough
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
ENGINE ?= process
PORT ?= 8000
CLUSTER ?=
PROFILES ?=
STORAGE ?=
STORAGE_USER ?=
SCHEDULER_OPTIONS ?=
ADMIN ?=
SESSIONS ?=
SCHEDULER ?=
CONFIG ?=
REGISTRY ?=
LOCK ?= constraints.txt
BENCH ?=

bin := .venv/bin
ui := pai_labextension/ui
ui_sources := $(wildcard $(ui)/package.json $(ui)/package-lock.json $(ui)/tsconfig.json $(ui)/babel.config.js) \
	$(shell find $(ui)/console $(ui)/lab $(ui)/web $(ui)/widget $(ui)/style $(ui)/schema -type f 2>/dev/null)
ui_linted := $(shell find $(ui) -name node_modules -prune -o -name lib -prune -o -type f -print 2>/dev/null)
ui_built := $(if $(wildcard $(ui)/package.json),build/ui)
# Node is the one on PATH, or is brought into .venv
with_node = PATH="$$(cat $(CURDIR)/build/node):$(CURDIR)/$(bin):$$PATH"
# one plain line for each step that has something to do; the times are those of a machine with two cores
say = @printf '%s\n'
# three workers for two cores, as tests wait for a third of their time; WORKERS=0: one test after the other, in one process
WORKERS ?= $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN) / 2)))
COVERED ?= not daemon and not long
in_parallel = --numprocesses=$(WORKERS)
# pip draws its progress only where somebody watches
pip_install = $(bin)/python -m pip install --disable-pip-version-check $(if $(MAKE_TERMOUT),,--quiet) \
	$(patsubst %,--constraint %,$(wildcard $(LOCK)))
npm_ci = $(with_node) npm ci --no-audit --no-fund --loglevel=error

# what tests start many times over is not compiled each time, whatever the environment says
test test-all check coverage: export PYTHONDONTWRITEBYTECODE :=

.DELETE_ON_ERROR:
.PHONY: password run doctor check test test-all bench bench-short coverage lint lint-python docs lock clean image agent runtime push

# before anything is fetched or built, so it comes first
run: password build/installed build/proxy/installed $(if $(filter docker swarm,$(ENGINE)),image runtime) \
		$(if $(and $(filter swarm,$(ENGINE)),$(REGISTRY)),push)
	@exec $(if $(PROFILES),env PAI_PROFILES='$(abspath $(PROFILES))') $(bin)/python -m hub_config.run --engine '$(ENGINE)' --port '$(PORT)' \
		$(if $(REGISTRY),--registry '$(REGISTRY)') \
		$(if $(CLUSTER),--cluster '$(CLUSTER)') $(if $(STORAGE),--storage '$(STORAGE)') \
		$(if $(STORAGE_USER),--storage-user '$(STORAGE_USER)') \
		$(if $(ADMIN),--admin '$(ADMIN)') $(if $(SESSIONS),--sessions '$(SESSIONS)') \
		$(if $(SCHEDULER),--scheduler '$(SCHEDULER)') $(if $(CONFIG),--config '$(CONFIG)') \
		$(if $(SCHEDULER_OPTIONS),--scheduler-options='$(SCHEDULER_OPTIONS)')

# both are asked, whatever the first has found
doctor: build/installed
	@status=0; $(bin)/pai-scheduler --config '$(or $(SCHEDULER),hub_config/scheduler.yaml)' --engine '$(ENGINE)' --data-dir '.run/$(ENGINE)/scheduler' \
		$(if $(REGISTRY),--agent-image "$(REGISTRY)/$$($(bin)/python -c 'from hub_config.images.push import *; print(AGENT)')") \
		$(if $(CLUSTER),--cluster '$(CLUSTER)') $(if $(STORAGE),--storage '$(STORAGE)') \
		$(if $(STORAGE_USER),--storage-user '$(STORAGE_USER)') $(SCHEDULER_OPTIONS) doctor || status=1; \
	$(if $(PROFILES),PAI_PROFILES='$(abspath $(PROFILES))') $(bin)/python -m hub_config.doctor --engine '$(ENGINE)' --port '$(PORT)' \
		$(if $(REGISTRY),--registry '$(REGISTRY)') $(if $(CLUSTER),--cluster '$(CLUSTER)') $(if $(ADMIN),--admin '$(ADMIN)') \
		$(if $(SESSIONS),--sessions '$(SESSIONS)') $(if $(CONFIG),--config '$(CONFIG)') || status=1; \
	exit $$status

# handed on without standing in a command line
export PASSWORD ADMIN_PASSWORD

# (the first target, `run`, stays what `make` alone does)
password:
	@[ -z "$$PASSWORD" ] || [ "$${#PASSWORD}" -ge 8 ] || \
		{ echo 'PASSWORD must have at least 8 characters.' >&2; exit 1; }

# pytest comes last, so that its summary is what one sees, and runs even if the front end's tests have failed
test: chosen := -m 'not long'
test-all: chosen := --thorough
test test-all: build/tools build/proxy/installed
	@$(bin)/python -m tests.prepare
	@status=0; \
	$(if $(ui_built),(cd $(ui) && $(with_node) npm test) || status=1;) \
	$(with_node) $(bin)/python -m pytest $(in_parallel) $(chosen) || status=1; \
	exit $$status

check: lint build/proxy/installed
	@$(with_node) $(bin)/python -m pytest $(in_parallel) -m 'not daemon and not long'

bench: build/bench-tools build/proxy/installed
	@$(with_node) $(bin)/python -m tests.benchmarks $(BENCH)

bench-short: build/tools
	@$(bin)/python -m tests.benchmarks --short $(BENCH)

coverage: build/tools build/proxy/installed
	@mkdir -p build/coverage
	@$(with_node) $(bin)/python -m pytest $(in_parallel) -m '$(COVERED)' --cov --cov-report=html:build/coverage/pages \
		--cov-report=term:skip-covered

lint: build/tools
	@$(MAKE) --no-print-directory --jobs=2 lint-python $(if $(ui_built),build/ui-lint)

lint-python:
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy
	$(bin)/lint-imports

docs: build/tools
	@$(bin)/python -m docs.generate

# a version stays where pyproject.toml still allows it; `rm constraints.txt` first takes the newest of everything
lock: build/lock/bin/uv
	@build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --all-extras --no-annotate \
		--no-emit-index-url --custom-compile-command 'make lock' --output-file constraints.txt pyproject.toml

# everything that was made, not what runs keep in .run
clean:
	rm -rf .venv build pai_labextension/labextension pai_labextension/console/static pai_labextension/widgets/static $(ui)/node_modules $(ui)/lib

# ── what the above need; each file is a stamp that says: done ─────────────────────────────────────────────

$(bin)/python:
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or newer is needed; give its path: make $(MAKECMDGOALS) PYTHON=…'; exit 1; }
	$(say) 'Making a Python environment in .venv (some seconds).'
	@$(PYTHON) -m venv .venv

build/ui-tools: pyproject.toml $(wildcard $(LOCK)) | $(bin)/python
	@mkdir -p build
	$(say) 'Installing JupyterLab, with which the front end is built (about twenty seconds).'
	@$(pip_install) 'jupyter-builder>=1,<2' 'jupyterlab>=4.6,<5'
	@touch $@

build/lock/bin/uv:
	$(say) 'Installing uv, which makes the lock (some seconds).'
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip install --disable-pip-version-check --quiet uv

build/node: hub_config/node.py | $(bin)/python
	@mkdir -p build
	@$(bin)/python -m hub_config.node > $@

build/ui-packages: $(wildcard $(ui)/package.json $(ui)/package-lock.json) | build/ui-tools build/node
	$(say) 'Fetching what the front end is built from (about twenty seconds).'
	@cd $(ui) && $(npm_ci)
	@touch $@

build/ui: $(ui_sources) build/ui-packages
	$(say) 'Building the front end for JupyterLab and the web (about ten seconds).'
	@cd $(ui) && $(with_node) npm run build
	@touch $@

# all or nothing: what is right in a file may be wrong since another has changed
build/ui-lint: $(ui_linted) build/ui-packages
	$(say) 'Linting the front end (about twenty seconds).'
	@cd $(ui) && $(with_node) npm run --silent lint
	@touch $@

build/installed: pyproject.toml $(wildcard $(LOCK)) pai_labextension/install.json $(shell find jupyter-config -type f) $(ui_built) | $(bin)/python
	@mkdir -p build
	$(say) 'Installing the Hub, the scheduler and what the tutorials use (about a minute).'
	@$(pip_install) --editable '.[hub,services,tutorials]'
	@touch $@

build/tools: build/installed
	$(say) 'Installing what the tests need (about half a minute).'
	@$(pip_install) --editable '.[test]'
	@touch $@

build/bench-tools: build/tools
	$(say) 'Installing what the benchmarks compare with (some seconds).'
	@$(pip_install) --editable '.[bench]'
	@touch $@

build/proxy/installed: hub_config/proxy/package.json hub_config/proxy/package-lock.json | build/node
	@mkdir -p build/proxy
	$(say) "Installing the Hub's proxy (some seconds)."
	@cp hub_config/proxy/package.json hub_config/proxy/package-lock.json build/proxy
	@cd build/proxy && $(npm_ci) --omit=dev
	@touch $@

# builds only what has changed; PAI_BASE_IMAGE names the image to begin from
image: build/installed
	@$(bin)/python -m hub_config.images.build

# the same for the agents that run the tasks of a Swarm's nodes
agent: build/installed
	@$(bin)/python -m hub_config.images.build --image agent

# REGISTRY=registry.lab:5000: brings all three to a registry that every machine of a Swarm reaches
push: image agent runtime
	@$(bin)/python -m hub_config.images.push '$(REGISTRY)'

# the same for the runtime that tasks have under /opt/pai
runtime: build/installed
	@$(bin)/python -m pai_scheduler.ssh.runtime.container.build
