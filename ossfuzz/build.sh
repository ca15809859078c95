#!/bin/bash -eu
# Builds all fuzz targets for OSS-Fuzz, in its image base-builder-go. If its compiler rejects a target, the script names and
# omits that target, and builds the others.
cd "$SRC/millrace"

# The compiler overlays a file of GOROOT, which Go forbids inside the module cache, where newer toolchains are.
root=$(go env GOROOT)
if [[ $root == "$(go env GOMODCACHE)"/* ]]; then
	cp -r "$root" /tmp/goroot
	chmod -R u+w /tmp/goroot
	export GOROOT=/tmp/goroot PATH=/tmp/goroot/bin:$PATH GOTOOLCHAIN=local
fi

# compile_native_go_fuzzer_v2 searches all folders below a package for the name, and refuses names with a common beginning. So
# this script calls the function that compile_native_go_fuzzer_v2 itself calls.
. "$(dirname "$(command -v compile_native_go_fuzzer_v2)")/go_utils.sh"
module=$(go list -m)
ossfuzz/targets.sh | while read -r dir function; do
	inner=${dir#.}
	abs_file_dir=$PWD$inner
	fuzzer_filename=$(grep -l "^func $function(" "$dir"/*_test.go)
	name=${inner#/}/$function
	name=${name#/}
	build_native_go_fuzzer "${name//\//_}" "$function" "$abs_file_dir" "$module$inner" </dev/null || echo "not built: $dir $function" >&2
done
