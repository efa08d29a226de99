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

step "image of celset-scheduler, loaded into the nodes"
make bin/ko
image=$(KO_DOCKER_REPO=kind.local KIND_CLUSTER_NAME=$cluster \
  bin/ko build --base-import-paths --tags=dev ./cmd/celset-scheduler)

step "celset-scheduler beside kube-scheduler, with the feature gates of the cluster"
kube kustomize manifests/overlays/second-scheduler |
  sed -e "s|image: celset-scheduler:dev|image: $image|" \
    -e 's|DRACELDeviceConstraint=true|&,DRADerivedAttributes=true,DRAListTypeAttributes=true|' |
  kube apply --server-side -f -
kube -n kube-system rollout status deployment celset-scheduler --timeout=3m

step "devices, which don't exist, and the examples"
kube apply --server-side -f manifests/kind/devices.yaml -f manifests/examples/deviceclasses.yaml
kube apply --server-side -f manifests/examples/ring-4-connected.yaml -f manifests/examples/grid-2x2.yaml
kube wait --for=condition=PodScheduled pod/ring pod/grid --timeout=1m

step "what they got"
kube get resourceclaims -o go-template='{{range .items}}{{.metadata.name}}:{{range .status.allocation.devices.results}} {{.pool}}/{{.device}}{{end}}{{"\n"}}{{end}}'
echo
echo "The pods don't start, because no driver prepares the devices."
echo "kind delete cluster --name $cluster"
