package tct

import "flag"

var (
	update = flag.Bool("update", false, "write what golden files and conversations want")
	items  = flag.Int("items", 50_000, "length of the list that has to go through in flat memory")
)
