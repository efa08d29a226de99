#!/usr/bin/env bash
# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0
#
# ko, with the base image of .ko.yaml among the images that it has pulled already: no registry is
# asked. The image has a user that is not root and no file. Programs are static, and have whom to
# trust in them. A change here changes the digest, which .ko.yaml has.
#
#   hack/ko.sh build ./cmd/celset-scheduler
set -euo pipefail
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
blobs=$cache/img/blobs/sha256
mkdir -p "$blobs"

media() { printf '"mediaType":"application/vnd.oci.image.%s.v1+json"' "$1"; }

# Stores the content of a type, and says what names it, with something more.
store() {
  local sum
  sum=$(printf %s "$2" | { sha256sum 2>/dev/null || shasum -a 256; } | cut -d' ' -f1)
  printf %s "$2" > "$blobs/$sum"
  printf '{%s,"size":%d,"digest":"sha256:%s"%s}' "$(media "$1")" "${#2}" "$sum" "${3:-}"
}

images=
for architecture in amd64 arm64; do
  platform='"os":"linux","architecture":"'$architecture'"'
  config=$(store config "{$platform,\"config\":{\"User\":\"65532\"},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[]}}")
  images+=,$(store manifest "{\"schemaVersion\":2,$(media manifest),\"config\":$config,\"layers\":[]}" ",\"platform\":{$platform}")
done
base=$(store index "{\"schemaVersion\":2,$(media index),\"manifests\":[${images#,}]}")
printf '{"schemaVersion":2,%s,"manifests":[%s]}' "$(media index)" "$base$images" > "$cache/img/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' > "$cache/img/oci-layout"
KOCACHE=$cache "${KO:-bin/ko}" "$@"
