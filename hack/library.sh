#!/usr/bin/env bash
# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes the module that has the libraries only, for a minor of Kubernetes, into an empty directory:
#
#	hack/library.sh 1.36 ../library
#
# It has the module path and the packages of this one, apis, cel, allocator and deviceattributes, and requires neither
# k8s.io/kubernetes nor what programs and tests take. A release branch of that minor is made of it.
set -euo pipefail
cd "$(dirname "$0")/.."

minor=${1:?the minor of Kubernetes, such as 1.36} out=${2:?a directory that does not exist or is empty}
# Of 1.38 the first alpha is the newest version that can be built: see docs/versions.md.
case $minor in
1.36) kubernetes=v0.36.3 ;;
1.37) kubernetes=$(go list -m -f '{{.Version}}' k8s.io/api) ;;
1.38) kubernetes=v0.38.0-alpha.0 ;;
*) echo "library: there is none for Kubernetes $minor: must be 1.36, 1.37 or 1.38" >&2; exit 1 ;;
esac
mkdir -p "$out"
[ -z "$(ls -A "$out")" ] || { echo "library: $out is not empty" >&2; exit 1; }

# allocator/conformance and allocator/internal/fixture only test the allocator, and take what no library takes.
git ls-files -z LICENSE apis cel allocator deviceattributes ':!allocator/conformance' ':!allocator/internal/fixture' |
  { grep -zvE '_test\.go$|/testdata/' || true; } | xargs -0 cp --parents -t "$out"
# Of the files for a minor and those for the others one is left, which no tag is needed for.
for package in apis/compat cel/compat; do
  if [ -e "$out/$package/kubernetes_$minor.go" ]; then
    mv "$out/$package/kubernetes_$minor.go" "$out/$package/compat.go"
  fi
  rm -f "$out/$package"/kubernetes_*.go
  sed -i '/^\/\/go:build/,+1d' "$out/$package/compat.go"
done

# What a package imports has the version that it has here, and Kubernetes that of the minor.
packages=$(go list ./apis/... ./cel/... ./allocator/... ./deviceattributes/... | grep -vE '/allocator/(conformance|internal/fixture)')
required=$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}' $packages | sort -u)
cd "$out"
export GOFLAGS=-mod=mod GOWORK=off
go mod init github.com/celset/celset 2>/dev/null
go mod edit -go=1.26.0
for module in $required; do
  case $module in
  k8s.io/*@v0.0.0-* | k8s.io/klog/*) go mod edit -require="$module" ;;
  k8s.io/*) go mod edit -require="${module%@*}@$kubernetes" ;;
  *) go mod edit -require="$module" ;;
  esac
done
go mod tidy
