# make check is what CI runs; the other targets are its parts, and the benchmarks.
GOLANGCI = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
UNWATCHED = modernc.org/... gonum.org/... github.com/klauspost/compress/... github.com/andybalholm/brotli/... golang.org/x/net/html/...

.PHONY: check test test-real race lint fuzz screenshots bench bench-large bench-extract bench-search

check: test race lint

test:
	go build ./...
	go test ./...
	cd bench && go vet ./... && go test ./...

# The tests over real servers, all of them; testdata/real/*.sh say what each needs.
test-real:
	MILLRACE_TEST_REQUIRE=1 MILLRACE_TEST_REAL=1 go test ./... -run Real -count 1

# Not the data base, the coders and the parser of HTML, which share nothing and compute most of the time.
race:
	go test -race -short $(UNWATCHED:%=-gcflags=%=-race=false) ./...

lint:
	go run $(GOLANGCI) run ./...
	cd bench && go run $(GOLANGCI) run ./...

# Each fuzz target for a few seconds: enough to see that it still runs.
fuzz:
	@for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for f in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$pkg/*_test.go | cut -c6-); do \
			echo "$$pkg $$f"; go test $$pkg -run '^$$' -fuzz "^$$f\$$" -fuzztime 5s || exit 1; \
		done; \
	done

# Every page of the dashboard in Chromium, narrow and wide, light and dark, as pictures below screenshots/.
screenshots:
	mkdir -p screenshots
	go test ./internal/dashboard -run Browser -count 1 -artifacts -outputdir "$(CURDIR)/screenshots"

bench:
	cd bench && go run . 

bench-large:
	cd bench && go run . -large

# Extraction beside its peers; DATA or MILLRACE_TEST_DATA names the gold data.
bench-extract:
	cd bench && go run . -only extract $(if $(DATA),-data $(abspath $(DATA)))

# Search with each of its parts switched off, on the gold data, and how fast it is over Debian's manuals.
bench-search:
	cd bench && go run . -only search $(if $(DATA),-data $(abspath $(DATA)))
