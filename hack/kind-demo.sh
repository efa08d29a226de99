#!/usr/bin/env bash
# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0
#
# From nothing to the examples on a cluster of kind. Needs Docker, kind, kubectl, Go, make.
#
#   hack/kind-demo.sh                  # Kubernetes 1.37
#   KUBERNETES=1.35 hack/kind-demo.sh
#   kind delete cluster --name celset
#
# NODE_IMAGE is another image of the nodes than those that kind publishes.
#
# There is no Docker where celset is developed: a test runs this script with programs in place
# of docker, kind, kubectl and ko that write down what they are called with. "make demo" is
# tested with everything.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "kind-demo: $*" >&2; exit 1; }

for program in docker kind kubectl go make; do
  command -v "$program" >/dev/null || fail "$program is not installed"
done

# What kind 0.33 lists. The patch version need not be that of go.mod.
kubernetes=${KUBERNETES:-1.37}
oldest_kind=0
case $kubernetes in
  1.34) published=v1.34.11 ;;
  1.35) published=v1.35.8 ;;
  1.36) published=v1.36.4 ;;
  1.37) published=v1.37.0 oldest_kind=32 ;;
  *) fail "KUBERNETES=$kubernetes: must be 1.34, 1.35, 1.36 or 1.37" ;;
esac
node_image=${NODE_IMAGE:-kindest/node:$published}

# "kind v0.33.0 go1.26.0 linux/amd64"
kind_version=$(kind version)
kind_minor=${kind_version#*v0.}
kind_minor=${kind_minor%%.*}
case $kind_minor in
  '' | *[!0-9]*) ;; # a build from source, or 1.0: it knows what it does
  *) [ "$kind_minor" -ge "$oldest_kind" ] ||
    fail "$kind_version is too old for Kubernetes $kubernetes, which needs kind 0.$oldest_kind or newer: update it, or say KUBERNETES=1.36" ;;
esac

cluster=celset
context=kind-$cluster

step() { printf '\n--- %s\n' "$*"; }
kube() { kubectl --context "$context" "$@"; }

step "cluster $cluster with $node_image"
if ! kind get clusters | grep -qx "$cluster"; then
  kind create cluster --config manifests/kind/cluster.yaml --image "$node_image" --wait 2m
fi

step "images, loaded into the nodes"
make bin/ko
image() {
  KO_DOCKER_REPO=kind.local KIND_CLUSTER_NAME=$cluster \
    hack/ko.sh build --base-import-paths --tags=dev --platform="linux/$(go env GOHOSTARCH)" "$1"
}
scheduler=$(image ./cmd/celset-scheduler)
driver=$(image github.com/celset/celset/test/topologydriver/celset-topology-driver)

step "celset-scheduler beside kube-scheduler"
kube kustomize manifests/overlays/second-scheduler |
  sed -e "s|image: celset-scheduler:dev|image: $scheduler|" |
  kube apply --server-side -f -
kube -n kube-system rollout status deployment celset-scheduler --timeout=3m

step "devices, which don't exist: a ring on one worker, a mesh on the other"
for topology in ring mesh; do
  kube kustomize manifests/overlays/topology-driver-$topology |
    sed -e "s|image: celset-topology-driver:dev|image: $driver|" |
    kube apply --server-side -f -
done
for topology in ring mesh; do
  kube -n celset-topology-driver rollout status daemonset celset-topology-driver-$topology --timeout=3m
done

step "the examples, with containers that say what they see"
for example in ring-4-connected grid-2x2; do
  # The line break is how every sed, not only GNU's, takes one.
  sed -e 's#image: registry.k8s.io/pause:.*#image: busybox:1.37\
    command: [sh, -c, "env | grep ^CELSET_DEVICE_ | sort; exec sleep infinity"]#' \
    manifests/examples/$example.yaml | kube apply --server-side -f -
done
kube wait --for=condition=Ready pod/ring pod/grid --timeout=3m

step "what they got"
kube get resourceclaims -o go-template='{{range .items}}{{.metadata.name}}:{{range .status.allocation.devices.results}} {{.pool}}/{{.device}}{{end}}{{"\n"}}{{end}}'
for pod in ring grid; do
  printf '\n%s:\n' "$pod"
  kube logs "$pod"
done
echo
echo "kind delete cluster --name $cluster"
