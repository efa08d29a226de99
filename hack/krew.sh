#!/usr/bin/env bash
# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the archives of kubectl-celset for a release, and the manifest for krew with
# their checksums:
#
#   hack/krew.sh v0.1.0 dist
#
# PLATFORMS limits it to some: PLATFORMS="linux/amd64" hack/krew.sh v0.1.0 dist
set -euo pipefail
version=${1:?usage: hack/krew.sh VERSION DIRECTORY}
directory=${2:?usage: hack/krew.sh VERSION DIRECTORY}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}

cd "$(dirname "$0")/.."
mkdir -p "$directory"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed "s/v0\.0\.0/$version/" manifests/krew/celset.yaml | sed '/^#/d' > "$directory/celset.yaml"

for platform in $platforms; do
  os=${platform%/*} arch=${platform#*/}
  binary=kubectl-celset
  if [ "$os" = windows ]; then binary=kubectl-celset.exe; fi
  CGO_ENABLED=0 GOOS=$os GOARCH=$arch ${GO:-go} build -trimpath -ldflags "-s -w" -o "$work/$binary" ./cmd/kubectl-celset
  cp LICENSE "$work/"
  archive=kubectl-celset_${os}_${arch}.tar.gz
  # Without names and times two builds of the same source have the same checksum.
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -c "$binary" LICENSE | gzip -n > "$directory/$archive"
  rm "$work/$binary"
  checksum=$(sha256sum "$directory/$archive" | cut -d' ' -f1)
  # The checksum stands in the line after the archive's address.
  sed -i "\|/$archive\$|{n;s/\"[0-9a-f]*\"/\"$checksum\"/}" "$directory/celset.yaml"
  echo "$checksum  $archive"
done
