# make check is what CI runs; the other targets are its parts, the long tier and the benchmarks.
GOLANGCI = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# The newest goreleaser that Go 1.26 can build from the available modules.
GORELEASER = github.com/goreleaser/goreleaser/v2@v2.16.0
export CYCLONEDX = github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
# Not built with the race detector: the database, the codecs and the HTML parser share no data and use most of the time.
UNWATCHED = modernc.org/... gonum.org/... github.com/klauspost/compress/... github.com/andybalholm/brotli/... golang.org/x/net/html/...
RACE = CGO_ENABLED=1 go test -race -vet=off $(UNWATCHED:%=-gcflags=%=-race=false)
# Packages with concurrent goroutines. For the command, these are the tests in which servers, pulls and watches run at the same
# time, and for the crawler and the store, the tests of concurrent use.
CONCURRENT = ./agent ./artifact/... ./discover ./internal/access ./internal/analytics ./internal/conns ./internal/edition ./internal/fetch ./internal/gateway \
	./internal/ingest ./internal/mcp ./internal/outbox ./internal/proxy \
	./internal/push ./internal/schedule ./internal/simulation ./internal/watch ./internal/webhook ./mirror ./publish
TOGETHER = Reload|SharedStore|Follows|WhileServing|PullWaits|TakeTurns|^TestWatch|^TestPush|^TestMCPOfServe|^TestEvents|^TestDashboard
# The packages whose tests use programs from outside the module.
REAL = $(sort $(dir $(shell grep -rl --include='*_test.go' '^func TestReal' --exclude-dir=bench --exclude-dir=caddy --exclude-dir=packaging .)))
FUZZTIME = 5s
VULNDB = https://vuln.go.dev

.PHONY: check test test-real race soak lint fuzz vuln docs screenshots bench bench-large bench-extract bench-search train-extract train-extract-figures release release-snapshot image

check: test test-real race lint

test:
	go test ./...
	cd bench && go vet ./... && go test ./...
	cd caddy && go vet ./... && go test ./...
	cd packaging && go vet ./... && go test ./...

# With MILLRACE_TEST_REQUIRE=1, a missing program is a failure. testdata/real/*.sh list the programs that they need.
test-real:
	MILLRACE_TEST_REAL=1 go test -vet=off -count 1 -run '^TestReal' $(REAL)
	cd caddy && MILLRACE_TEST_REAL=1 go test -vet=off -count 1 -run '^TestReal' .
	cd packaging && MILLRACE_TEST_REAL=1 go test -count 1 ./...

race:
	$(RACE) -short $(CONCURRENT)
	$(RACE) -short -run '$(TOGETHER)' ./cmd/millrace
	$(RACE) -short -run '^Test(Crawl|Lost|ManyLists|Outage|Queue|Restart|Resume|Schedule)' ./origin/crawl
	$(RACE) -short -run '^Test(Store|WritersTakeTurns|UsageProcesses)$$/at_once|while' ./store/sqlite
	$(RACE) -short -run '^Test(Ahead|AtOnce|BuiltAtOnce)$$' ./internal/index

# The long tier: all seeds, many kills, large data. It takes hours.
soak:
	MILLRACE_TEST_SOAK=1 MILLRACE_TEST_REAL=1 go test -count 1 -timeout 6h ./...
	cd packaging && MILLRACE_TEST_SOAK=1 MILLRACE_TEST_REAL=1 go test -count 1 -timeout 1h ./...
	$(RACE) -count 1 -timeout 3h ./...
	cd bench && go run . -only soak
	$(MAKE) fuzz FUZZTIME=1m

lint:
	go run $(GOLANGCI) run ./...
	cd bench && go run $(GOLANGCI) run ./...
	cd caddy && go run $(GOLANGCI) run ./...
	cd packaging && go run $(GOLANGCI) run ./...

# Runs each fuzz target for a few seconds, to check that it still works.
fuzz:
	@ossfuzz/targets.sh | while read -r pkg f; do \
		echo "$$pkg $$f"; go test $$pkg -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) </dev/null || exit 1; \
	done

# Reports known vulnerabilities in the functions that the code calls. VULNDB can be the URL of a copy of the database.
vuln:
	@if curl -fsSL -m 20 -o /dev/null $(VULNDB)/index/db.json; then \
		go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db $(VULNDB) ./...; \
	else echo "vuln: skipped, because $(VULNDB) cannot be reached"; fi

# Builds the documentation as HTML. millrace serve site publishes it, with search.
docs:
	go run ./docs/site --out site

# Takes screenshots of every dashboard page in Chromium, narrow and wide, light and dark, in screenshots/.
screenshots:
	mkdir -p screenshots
	MILLRACE_TEST_REAL=1 go test ./internal/dashboard -run TestRealBrowser -count 1 -artifacts -outputdir "$(CURDIR)/screenshots"

bench:
	cd bench && go run . 

bench-large:
	cd bench && go run . -large

# Compares extraction with its peers. DATA or MILLRACE_TEST_DATA is the folder of the gold data.
bench-extract:
	cd bench && go run . -only extract $(if $(DATA),-data $(abspath $(DATA)))

# Trains the classifier of package extract on the gold data; the same data produce the same table.
train-extract:
	cd bench && go run ./train $(if $(DATA),-data $(abspath $(DATA))) -write ../extract/classify_table.go

# Cross-validates the classifier over domains.
train-extract-figures:
	cd bench && go run ./train $(if $(DATA),-data $(abspath $(DATA)))

# Measures search with each of its parts disabled, on the gold data, and its speed on Debian's manuals.
bench-search:
	cd bench && go run . -only search $(if $(DATA),-data $(abspath $(DATA)))

# Builds all files of a release in dist/, without a tag and without signatures.
release-snapshot:
	go run $(GORELEASER) release --snapshot --clean --skip=sign --parallelism 2
	$(MAKE) image

# In CI, on a tag: builds, signs and uploads the release. SKIP is a flag that omits steps.
release:
	go run $(GORELEASER) release --clean $(SKIP)
	$(MAKE) image

# Builds the container image of the binaries in dist/, as an OCI layout.
image:
	cd packaging && go run ./image -dist ../dist
