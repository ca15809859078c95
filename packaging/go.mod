module github.com/millrace/millrace/packaging

go 1.26.0

require (
	github.com/google/go-containerregistry v0.22.1
	github.com/millrace/millrace v0.0.0-00010101000000-000000000000
	golang.org/x/crypto/x509roots/fallback v0.0.0-20261030153154-30a33513ff6d
)

require (
	github.com/goccy/go-yaml v1.19.2
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

replace github.com/millrace/millrace => ../
