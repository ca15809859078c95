#!/bin/sh
# Prints the fuzz targets of the module, one a line: the folder of its package and its name.
cd "$(dirname "$0")/.." && grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's#/[^/]*:func # #' | sort
