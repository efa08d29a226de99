#!/usr/bin/env bash
# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes all files of a release into a directory: see docs/release.md. "make release" builds the
# programs for it and says by variables what is released. Takes GNU's tar, sed and touch.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { echo "release: $*" >&2; }
fail() { step "$*"; exit 1; }

[[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
  fail "VERSION=$VERSION: must be a semantic version with a v, such as v0.37.2"
minor=$(sed -n 's|^\tk8s.io/kubernetes v1\.\([0-9]*\)\..*|\1|p' go.mod)
[[ $VERSION == v0.$minor.* ]] ||
  fail "VERSION=$VERSION: must be v0.$minor and a patch version, because go.mod has Kubernetes 1.$minor: see docs/versions.md"
[[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] ||
  fail "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH: must be seconds since 1970, such as \"git log -1 --format=%ct\" prints"
# What is no release is not deleted.
DIST=${DIST%/}
[ ! -e "$DIST" ] || [ -e "$DIST/SHA256SUMS" ] || rmdir "$DIST" 2>/dev/null ||
  fail "$DIST is neither empty nor a release: delete it, or name another directory with DIST"

# Every build gets the same settings, whatever those of this machine are.
export TZ=UTC LC_ALL=C GOFLAGS=-buildvcs=false GOWORK=off GOEXPERIMENT= GOFIPS140=off GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0
export SOURCE_DATE_EPOCH KO_DATA_DATE_EPOCH=$SOURCE_DATE_EPOCH GOTOOLCHAIN
export LDFLAGS="-X github.com/celset/celset/internal/version.released=$VERSION -X github.com/celset/celset/internal/version.revision=$REVISION"
unset GOOS GOARCH KO_CONFIG_PATH KO_DEFAULTBASEIMAGE KO_DEFAULTPLATFORMS KO_DOCKER_REPO
for program in bin/ko bin/helm; do
  [[ $(go version "$program") == *": $GOTOOLCHAIN" ]] ||
    fail "$program was not built with $GOTOOLCHAIN, and compresses to other bytes: delete it"
done

out=$DIST.unfinished
work=$(mktemp -d)
# ko takes the path of a layout for the name of an image, which has no capital letters.
layout=bin/layout-$$
trap 'rm -rf "$work" "$layout" "$out"' EXIT
rm -rf "$out"
mkdir -p "$out/images"

section() { awk -v want="$1" '/^## / { inside = $2 == want; next } inside' CHANGELOG.md; }
notes=$(section "$VERSION")
[ -n "$notes" ] || notes=$(section Unreleased)
[ -n "$notes" ] || fail "CHANGELOG.md has neither a section $VERSION nor one of what is unreleased"

step "images"
digests= products=
for path in $IMAGES; do
  program=${path##*/}
  image=$REGISTRY/$program:$VERSION
  digest=$(hack/ko.sh build --push=false --platform="$PLATFORMS" --sbom=spdx --sbom-dir="$out" --oci-layout-path="$layout" \
    --image-label="org.opencontainers.image.version=$VERSION,org.opencontainers.image.revision=$REVISION" \
    --image-label="org.opencontainers.image.source=https://github.com/celset/celset,org.opencontainers.image.licenses=Apache-2.0" "$path")
  digest=${digest##*@}
  mv "$layout" "$out/images/$program"
  # The first name is that of the specification, the other one what containerd looks at.
  sed -i "s|\"digest\": \"$digest\"|&, \"annotations\": {\"org.opencontainers.image.ref.name\": \"$image\", \"io.containerd.image.name\": \"$image\"}|" "$out/images/$program/index.json"
  echo "$image@$digest" >> "$out/images.txt"
  echo "s|image: $program:dev\$|image: $image@$digest|" >> "$work/released.sed"
  digests+="\\n    $program: $digest"
  products+="{\"@id\": \"pkg:oci/$program@${digest/:/%3A}?repository_url=$REGISTRY/$program\"}, "
done
echo "s|^\( *app.kubernetes.io/version\): dev\$|\1: $VERSION|" >> "$work/released.sed"

step "chart"
cp -RL manifests/charts/celset "$work/celset"
sed -i -e "s|^  registry: \"\"\$|  registry: $REGISTRY|" -e "s|^  tag: dev\$|  tag: $VERSION|" -e "s|^  digests: {}\$|  digests:$digests|" "$work/celset/values.yaml"
# For Artifact Hub: the images, and the changes by what they have in bold.
prerelease=false
[[ $VERSION != *-* ]] || prerelease=true
sed -i -f "$work/released.sed" -e "s|^  artifacthub.io/prerelease: .*|  artifacthub.io/prerelease: \"$prerelease\"|" "$work/celset/Chart.yaml"
{
  echo '  artifacthub.io/changes: |'
  awk -F'[*][*]' '/^- [*][*]/ { print $2 }' <<< "$notes" | sed -E -e 's/\[([^]]*)\]\([^)]*\)/\1/g' -e 's/[`"\]//g' -e 's/.*/    - "&"/'
} >> "$work/celset/Chart.yaml"
find "$work/celset" -exec touch --date="@$SOURCE_DATE_EPOCH" {} +
bin/helm package "$work/celset" --version="${VERSION#v}" --app-version="$VERSION" --destination="$out"

step "manifests"
# webhook/secret is none of them: it takes a certificate that only the user has.
for folder in manifests/overlays/* manifests/monitoring/* manifests/webhook/default manifests/webhook/cert-manager manifests/placement/crds manifests/placement/profile-crds; do
  case $folder in
  manifests/monitoring/*) name=monitoring-${folder##*/} ;;
  manifests/webhook/default) name=webhook ;;
  manifests/webhook/cert-manager) name=webhook-cert-manager ;;
  manifests/placement/crds) name=placement-crds ;;
  *) name=${folder##*/} ;;
  esac
  "$KUBECTL" kustomize "$folder" | sed -f "$work/released.sed" > "$out/install-$name.yaml"
  ! grep -E '(image: [a-z-]+:|version: )dev$' "$out/install-$name.yaml" || fail "$folder has an image or a version that is not released"
done

step "kubectl plugin"
# The template is that of krew-release-bot, which downloads the archives for their sums.
sed -e '/^#/d' -e "s|{{ \.TagName }}|$VERSION|" .krew.yaml > "$out/krew.yaml"
for platform in ${PLUGIN_PLATFORMS//,/ }; do
  name=kubectl-celset_${platform/\//_}
  binary=kubectl-celset
  case $platform in windows/*) binary+=.exe ;; esac
  GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath -ldflags="-s -w $LDFLAGS" -o "$work/$name/$binary" ./cmd/kubectl-celset
  cp LICENSE "$work/$name"
  (cd "$work/$name" && go version -m "$binary") > "$out/$name.modules.txt"
  tar --directory="$work/$name" --create --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    "$binary" LICENSE | gzip -9n > "$out/$name.tar.gz"
  sum=$(sha256sum < "$out/$name.tar.gz" | cut -d' ' -f1)
  sed -i "s|{{addURIAndSha \"\(.*/$name\.tar\.gz\)\" \.TagName }}|uri: \1\n    sha256: \"$sum\"|" "$out/krew.yaml"
done
# krew takes no platform that has no archive.
sed -i "s|{{addURIAndSha \"\(.*\)\" \.TagName }}|uri: \1\n    sha256: \"$(printf '0%.0s' {1..64})\"|" "$out/krew.yaml"

step "vulnerabilities"
# VEX: known ones that scanners find in modules, and that the programs don't have.
sed -e "s|v0\.0\.0|$VERSION|" -e "s|1970-01-01T00:00:00Z|$(date --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)|" \
  -e "s|\"products\": \[\]|\"products\": [$products{\"@id\": \"pkg:golang/github.com/celset/celset@$VERSION\"}]|" hack/openvex.json > "$out/celset.openvex.json"

if [ -d schemas ]; then
  step "schemas"
  cp schemas/*.json "$out"
fi

step "release notes"
{
  sed '/./,$!d' <<< "$notes"
  printf '\n## Images\n\n'
  sed 's/.*/- `&`/' "$out/images.txt"
} > "$out/release-notes.md"

(cd "$out" && find . -type f -printf '%P\n' | sort | xargs -d '\n' sha256sum) > "$work/SHA256SUMS"
cp "$work/SHA256SUMS" "$out"
rm -rf "$DIST"
mv "$out" "$DIST"
