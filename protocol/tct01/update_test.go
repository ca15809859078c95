package tct01

import "flag"

var update = flag.Bool("update", false, "write what golden files and conversations want")
