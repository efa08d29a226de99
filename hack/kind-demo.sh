#!/usr/bin/env bash
# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0
#
# From nothing to the examples on a cluster of kind. Needs Docker, kind, kubectl, Go, make.
#
#   hack/kind-demo.sh
#   kind delete cluster --name celset
#
# Untested: there is no Docker where celset is developed. "make demo" is tested.
#
# NODE_IMAGE is the image of the nodes. It should have the version of Kubernetes that
# celset-scheduler is built from, because a scheduler must not be newer than the API
# server. If there is none: kind build node-image <version> --image <NODE_IMAGE>
set -euo pipefail
cd "$(dirname "$0")/.."

for program in docker kind kubectl go make; do
  command -v "$program" >/dev/null || { echo "kind-demo: $program is not installed" >&2; exit 1; }
done

cluster=celset
context=kind-$cluster
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
node_image=${NODE_IMAGE:-kindest/node:$version}

step() { printf '\n--- %s\n' "$*"; }
kube() { kubectl --context "$context" "$@"; }

step "cluster $cluster with $node_image"
if ! kind get clusters | grep -qx "$cluster"; then
  kind create cluster --config manifests/kind/cluster.yaml --image "$node_image" --wait 2m
fi

step "images, loaded into the nodes"
make bin/ko
image() {
  KO_DOCKER_REPO=kind.local KIND_CLUSTER_NAME=$cluster bin/ko build --base-import-paths --tags=dev "./cmd/$1"
}
scheduler=$(image celset-scheduler)
driver=$(image celset-topology-driver)

step "celset-scheduler beside kube-scheduler, with the feature gates of the cluster"
kube kustomize manifests/overlays/second-scheduler |
  sed -e "s|image: celset-scheduler:dev|image: $scheduler|" \
    -e 's|DRACELDeviceConstraint=true|&,DRADerivedAttributes=true,DRAListTypeAttributes=true|' |
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
  sed -e 's|image: registry.k8s.io/pause:.*|image: busybox:1.37\n    command: [sh, -c, "env \| grep ^CELSET_DEVICE_ \| sort; exec sleep infinity"]|' \
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
