#!/usr/bin/env bash
# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Pushes images and chart of a release to their registry, with the credentials of Docker's
# configuration, and writes their names by digest into a file. What is there already is left alone;
# a tag of something else is an error, since releases don't change.
#
#   hack/push.sh DIST REFERENCES [FLAG OF HELM PUSH]...
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$1 references=$2
shift 2

moved() { echo "push: the registry has something else under $1: take another version, or delete the tag" >&2; exit 1; }

: > "$references"
while IFS=@ read -r tag digest; do
  there=$(bin/crane digest "$tag" 2>/dev/null || true)
  [ "${there:-$digest}" = "$digest" ] || moved "$tag"
  program=${tag##*/}
  [ -n "$there" ] || bin/crane push "$dist/images/${program%:*}" "$tag"
  echo "${tag%:*}@$digest" >> "$references"
done < "$dist/images.txt"

chart=$(echo "$dist"/celset-*.tgz)
version=${chart##*/celset-}
read -r registry < "$dist/images.txt"
tag=${registry%/*}/charts/celset:${version%.tgz}
if there=$(bin/crane manifest "$tag" 2>/dev/null); then
  [[ $there == *$(sha256sum < "$chart" | cut -d' ' -f1)* ]] || moved "$tag"
else
  bin/helm push "$chart" "oci://${tag%/*}" "$@"
fi
echo "${tag%:*}@$(bin/crane digest "$tag")" >> "$references"
