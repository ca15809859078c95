#!/bin/sh
# Prints the fuzz targets of the module, one per line: the folder of the package and the name of the target.
cd "$(dirname "$0")/.." && grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's#/[^/]*:func # #' | sort
