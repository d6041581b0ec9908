# What people run. `make` alone lists it. Each goal first installs what it needs and lacks (.ci/setup).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# Building asks no database: what each statement needs is in .sqlx (see `make sqlx`).
export SQLX_OFFLINE ?= true

CROWD ?= 0
SEEDS ?= 1..20
SECONDS ?= 30
LISTEN ?= 127.0.0.1:8080
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)
FULLHOUSE = $(TARGET_DIR)/debug/fullhouse
PAGE = assets/fan/dist/index.html
TILL = box-office-app/ui/dist/index.html
SHELL_MANIFEST = box-office-app/src-tauri/Cargo.toml
TILL_SOURCES = $(shell find box-office-app/ui assets/protocol assets/seat-map assets/hub-client assets/fan/src -type f -not -path '*/dist/*' 2>/dev/null) package-lock.json
PAGE_SOURCES = $(shell find assets -type f -not -path '*/dist/*' -not -path '*/screenshots/*' -not -path '*/plans/*' 2>/dev/null) package-lock.json

.PHONY: help
help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

.PHONY: demo
demo: setup-demo $(PAGE) binary ## A sale to play with: PostgreSQL, payments and two events included (CROWD=300: with company; LISTEN=host:port)
	@exec $(FULLHOUSE) demo --listen $(LISTEN) --crowd $(CROWD)

.PHONY: printer
printer: ## A printer of tickets without paper, at 127.0.0.1:9100: what tills print lies as pictures in .fullhouse/printed
	cargo run --quiet -p fullhouse-test-printer --bin paper-printer

.PHONY: box-office
box-office: setup-box-office $(PAGE) binary shell ## The desktop app, at a demo of its own (ROLE=kiosk: among the public)
	@exec node box-office-app/try.mjs $(ROLE)

.PHONY: release
release: setup-demo $(PAGE) ## The binary as it is deployed (target/release/fullhouse), and the page (assets/fan/dist)
	cargo build --release -p fullhouse

.PHONY: release-box-office
release-box-office: setup-box-office $(TILL) ## The desktop app as it is installed (target/release/box-office)
	cargo build --release --locked --manifest-path $(SHELL_MANIFEST) --target-dir $(TARGET_DIR)

.PHONY: test
test: setup-test test-rust test-page test-browser ## Everything that is proved: Rust, TypeScript, browser

.PHONY: test-rust
test-rust: setup-test everything
	cargo test --workspace

# Part of test-rust: the provider's own SDK, another mock and another server, against ours.
.PHONY: test-peers
test-peers: setup-test everything
	cargo test -p fullhouse-tests --test all peers_

.PHONY: test-page
test-page: setup-demo
	npm test

.PHONY: test-browser
test-browser: setup-test $(PAGE) everything shell
	node --test --test-concurrency=1 tests/browser/*.test.mjs

.PHONY: check
check: setup-test everything $(TILL) ## Formatting, lints, and that generated files are up to date
	cargo fmt --all --check
	cargo fmt --manifest-path $(SHELL_MANIFEST) --check
	.ci/sqlx --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	@# A build with clippy as its compiler: cargo clippy would compile all that the window stands on a second time.
	RUSTC_WORKSPACE_WRAPPER=clippy-driver cargo build --quiet --locked --manifest-path $(SHELL_MANIFEST) --target-dir $(TARGET_DIR)
	$(FULLHOUSE) openapi | diff -u assets/openapi.json - || { echo "run \`make openapi\` and commit it"; exit 1; }
	node .ci/third-party.mjs --check
	npm run format:check
	npm run --silent check:openapi
	npm run check

.PHONY: screenshots
screenshots: setup-screenshots $(PAGE) binary shell ## Pictures of every page, into assets/screenshots
	node tests/browser/screenshots.mjs
	node tests/browser/screenshots-till.mjs
	node tests/browser/screenshots-kiosk.mjs

.PHONY: bench-holds
bench-holds: setup-bench ## Holds a second: ours, one transaction a request, Redis; the last line is JSON
	cargo run --quiet --release -p fullhouse-tests --bin bench-holds

# PUSH_FLAGS: `--parts 1,2`, `--only ours,floor`, `--rounds 3`, `--viewers 100000` (see tests/PUSH-BENCH.md).
.PHONY: bench-push
bench-push: setup-bench ## Open maps: what one costs, beside five other servers, and half a million of them; the last line is JSON
	cargo build --quiet --release -p fullhouse -p fullhouse-tests --bin fullhouse --bin bench-push
	$(TARGET_DIR)/release/bench-push $(PUSH_FLAGS)

.PHONY: bench-queue
bench-queue: setup-bench ## Half a million people join a line, are drawn and are called; the last line is JSON
	cargo build --quiet --release -p fullhouse -p fullhouse-tests --bin fullhouse --bin bench-queue
	$(TARGET_DIR)/release/bench-queue

.PHONY: bench-till-map
bench-till-map: setup-box-office setup-test $(PAGE) everything shell ## A stadium's map in the desktop's window without a GPU: script time a frame; the last line is JSON
	node tests/browser/bench-till-map.mjs

# Whether the benches run at all; their figures mean nothing.
.PHONY: bench-smoke
bench-smoke: setup-bench everything
	$(TARGET_DIR)/debug/bench-holds --smoke
	$(TARGET_DIR)/debug/bench-push --smoke
	$(TARGET_DIR)/debug/bench-queue --smoke

.PHONY: model
model: setup-test ## Every order in which hubs, buyers, the provider and time can act: further than the tests search
	cargo run --quiet -p fullhouse-model

.PHONY: soak
soak: setup-test everything ## Buyers, tills, dying hubs and a failing provider, a seed after the other (SEEDS=1..20; SECONDS=30 of faults each)
	$(TARGET_DIR)/debug/soak --seeds $(SEEDS) --seconds $(SECONDS)

.PHONY: cut
cut: setup-test everything ## Tills whose network is cut and whose processes are killed, a seed after the other (SEEDS=1..20; SECONDS=30 each)
	$(TARGET_DIR)/debug/cut --seeds $(SEEDS) --seconds $(SECONDS)

.PHONY: plots
plots: setup-test ## Draws how the pace of a line follows what goes wrong, into tests/plots
	cargo run --quiet -p fullhouse-tests --bin plots

.PHONY: pace-real
pace-real: setup-test ## Once for real: what a hub's controller did about a slow database, into tests/plots/pace-real.md
	FULLHOUSE_PACE_REAL=$(CURDIR)/tests/plots/pace-real.md cargo test --quiet -p fullhouse-tests --test all pace_real

.PHONY: simulate-queue
simulate-queue: setup-test ## Who gets which share of the places, under each rule of the door: the table of protocol/DRAW.md
	cargo run --quiet -p fullhouse-tests --bin simulate-queue

.PHONY: sqlx
sqlx: setup-demo ## Writes .sqlx anew after a statement or a migration has changed
	.ci/sqlx

.PHONY: openapi
openapi: binary ## Writes assets/openapi.json anew after the HTTP interface has changed
	$(FULLHOUSE) openapi >assets/openapi.json

.PHONY: third-party
third-party: setup-demo ## Writes THIRD-PARTY.md anew after a lock file has changed: whose work is shipped, under which licences
	node .ci/third-party.mjs

.PHONY: clean
clean: ## Removes what was built and the demo's data
	rm -rf target .fullhouse node_modules assets/fan/dist box-office-app/ui/dist

.PHONY: binary
binary:
	cargo build -p fullhouse

# All that tests run, built once: a package built alone asks its dependencies for fewer features,
# and everything would be built a second time.
.PHONY: everything
everything:
	cargo build --quiet --workspace --all-targets

# The desktop's shell is a workspace of its own: whoever builds a hub needs no WebKit.
.PHONY: shell
shell: $(TILL)
	cargo build --quiet --locked --manifest-path $(SHELL_MANIFEST) --target-dir $(TARGET_DIR)

$(PAGE): $(PAGE_SOURCES)
	npm run build -- --logLevel warn

$(TILL): $(TILL_SOURCES)
	npm run build:till -- --logLevel warn

.PHONY: setup-demo setup-test setup-screenshots setup-bench setup-box-office
setup-demo setup-test setup-screenshots setup-bench setup-box-office: setup-%:
	@.ci/setup $*
