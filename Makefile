# The few verbs that people need. `make` alone lists them.
# Tools are pinned in modules of their own under tools/ and built into ./bin,
# so that the product's go.mod names only what the product links.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
FUZZTIME ?= 5s
PKG      ?= ./...

# One set of build flags for tests, lint and releases, so that nothing is compiled twice
# and a clone in another folder finds in the cache what was compiled before.
export CGO_ENABLED ?= 0
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath

.PHONY: help
help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build ./bin/sbx for this machine, static and stripped
	$(GO) build -ldflags '-s -w' -o bin/sbx ./cmd/sbx

.PHONY: test
test: ## run all tests (PKG=./internal/fleet/... for some)
	$(GO) test $(PKG)

.PHONY: race
race: ## run all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race $(PKG)

.PHONY: postgres
postgres: ## hold the store to its contract on a Postgres of its own
	.ci/run postgres

.PHONY: lint
lint: bin/golangci-lint ## run the pinned golangci-lint
	bin/golangci-lint run $(PKG)

.PHONY: deadcode
deadcode: bin/deadcode ## list the functions that nothing reaches
	scripts/deadcode bin/deadcode

.PHONY: fmt
fmt: bin/golangci-lint ## format with gofumpt and goimports
	bin/golangci-lint fmt

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (20000x)
	scripts/fuzz $(FUZZTIME) $(PKG)

.PHONY: bench
bench: ## run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem $(PKG)

.PHONY: cover
cover: ## print the coverage of each function and in total
	@mkdir -p bin
	$(GO) test -coverprofile=bin/cover.out -coverpkg=./internal/... $(PKG)
	$(GO) tool cover -func=bin/cover.out

.PHONY: docs
docs: ## regenerate completions/, man/, runbooks/*.md, docs/cli/, docs/schemas/, deploy/ and tables of docs/
	$(GO) test ./internal/documents ./internal/runbook ./internal/cli ./internal/commands ./internal/testkit/tiertest -run '^TestGenerated' -count=1 -update

.PHONY: pictures
pictures: ## draw docs/pictures from what the program shows
	$(GO) test ./internal/tui ./internal/commands -run '^TestPicture' -count=1 -update

.PHONY: house
house: ## measure the rooms: sizes, names of functions, arrows between files
	$(GO) run -C tools/house .

.PHONY: incident
incident: build ## serve a staged incident of 300 sandboxes on loopback (CMD="sbx ls" runs one command in it)
	PATH="$(CURDIR)/bin:$$PATH" $(GO) run ./cmd/staged-incident -- $(CMD)

.PHONY: perf
perf: ## measure start, create, kill, listing and memory against the budgets
	scripts/perf

.PHONY: snapshot
snapshot: ## build the release archives and packages into ./dist, publish nothing
	scripts/snapshot

.PHONY: ci
ci: ## run the gate: what a change has to pass
	.ci/run

.PHONY: deep
deep: ## run all the rest, each stage with its own verdict
	.ci/run deep

bin/golangci-lint: tools/golangci-lint/go.mod tools/golangci-lint/go.sum
	$(GO) build -C tools/golangci-lint -ldflags '-s -w' -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/gotestsum: tools/gotestsum/go.mod tools/gotestsum/go.sum
	$(GO) build -C tools/gotestsum -ldflags '-s -w' -o ../../bin/gotestsum gotest.tools/gotestsum

bin/deadcode: tools/deadcode/go.mod tools/deadcode/go.sum
	$(GO) build -C tools/deadcode -ldflags '-s -w' -o ../../bin/deadcode golang.org/x/tools/cmd/deadcode
