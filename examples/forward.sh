#!/bin/sh
# Any tool that turns IN.npy into OUT.npy, as a forward operator: exec:./examples/forward.sh TOOL
# Each request is saved as a file, TOOL IN.npy OUT.npy is run, and OUT.npy is the answer. TOOL cp is the identity.
tool=${1:?usage: forward.sh TOOL}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

while :; do
  # An NPY file: 10 bytes, of which the last two are the header's length; the header; the numbers, 4 bytes each.
  head -c 10 > "$folder/in.npy"
  [ "$(wc -c < "$folder/in.npy")" -eq 10 ] || exit 0 # no further request
  length=$(od -An -tu2 -j8 -N2 "$folder/in.npy")
  head -c $((length)) > "$folder/header"
  count=1
  for axis in $(sed "s/.*'shape': (\([^)]*\)).*/\1/" "$folder/header" | tr ',' ' '); do count=$((count * axis)); done
  { cat "$folder/header"; head -c $((4 * count)); } >> "$folder/in.npy"

  "$tool" "$folder/in.npy" "$folder/out.npy" 1>&2 || exit 1 # what the tool prints is no answer
  cat "$folder/out.npy"
done
