LINTER := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help build run test lint generate format check bench bench-system bench-peers screenshots release site clean
.DEFAULT_GOAL := help

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## put the programs into bin/, and the drivers into bin/plugins/
	go build -trimpath -o bin/ ./cmd/...
	mkdir -p bin/plugins
	go build -trimpath -o bin/plugins/ $$(go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./plugins/...)

run: ## serve a board to try things with, on 127.0.0.1:7422
	go run ./cmd/boardd serve --dev

test: ## install what the tests need where that is possible, and run all of them
	./scripts/setup.sh
	./scripts/test.sh $(TESTFLAGS)

lint: ## run the linters, and check the format
	go run $(LINTER) config verify
	go run $(LINTER) run ./...
	go run $(LINTER) fmt --diff ./...

generate: ## write generated code anew (needs protoc)
	./scripts/generate.sh

format: ## format all Go code
	go run $(LINTER) fmt ./...

check: ## everything that continuous integration does
	./.ci/run

bench: ## run the benchmarks of all packages
	go test -run='^$$' -bench=. -benchmem ./...

bench-system: ## measure whole servers, as docs/benchmarks.md quotes (ten minutes, alone)
	./scripts/bench.sh

bench-peers: ## measure boardd beside other queues, into docs/benchmarks.md (nine minutes, alone)
	./scripts/bench-peers.sh

screenshots: ## take the pictures of docs/ anew (needs Chromium)
	BOARDD_SCREENSHOTS=write go test ./host/web -run TestScreenshots -count=1

release: ## put into dist/ what a release consists of, as VERSION=0.1.0
	./scripts/release.sh "$(VERSION)"

site: ## put into dist/site/ the documentation as a site, as VERSION=0.1.0
	./scripts/site.sh "$(VERSION)" dist/site

clean: ## remove what was built
	rm -rf bin dist
