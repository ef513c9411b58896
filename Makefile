# Everything one needs: `make run` and `make test` set up what is missing by themselves.

CARGO ?= cargo
CONFIG ?=
DATA_DIR ?= .quintet
ARGS ?=
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)

.PHONY: run test lint fmt bench build setup help

help:
	@echo "make run    build and start the daemon (CONFIG=file, DATA_DIR=dir, ARGS='--listen …')"
	@echo "make test   format, lints, tidy rules and all tests"
	@echo "make lint   format and lints alone"
	@echo "make bench  measure against a bare proxy in the same run"

run: build
	@target/release/quintet serve --data-dir $(DATA_DIR) $(if $(CONFIG),--config $(CONFIG)) $(ARGS)

build: setup
	$(CARGO) build --release -p quintet-daemon

test: lint
	$(CARGO) test --workspace --no-fail-fast

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@if command -v cargo-deny >/dev/null 2>&1; then \
	  $(CARGO) deny --log-level error check bans licenses sources; \
	else echo "cargo-deny is not installed: licences and sources were not checked"; fi

fmt:
	$(CARGO) fmt --all

bench: setup
	$(CARGO) build --release -p quintet-daemon -p quintet-bench
	target/release/quintet-bench $(ARGS)

# A C compiler builds the bundled SQLite and the grammars; git and make are used by tests;
# ca-certificates by TLS; graphviz by `diagram`, which can do without.
setup:
	@command -v $(CARGO) >/dev/null || { echo "Rust is not installed: see rustup.rs"; exit 1; }
	@missing=""; \
	for tool in cc:gcc make:make git:git curl:curl; do \
	  command -v $${tool%%:*} >/dev/null || missing="$$missing $${tool##*:}"; done; \
	[ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$$missing ca-certificates"; \
	if [ -n "$$missing" ]; then \
	  echo "installing$$missing"; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends $$missing libc6-dev; fi
	@command -v dot >/dev/null || { echo "installing graphviz"; \
	  { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends graphviz; } >/dev/null 2>&1 \
	  || echo "graphviz could not be installed: the tool \`diagram\` will draw Mermaid only"; }
