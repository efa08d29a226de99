// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement has no code of its own. Its tests tell the stories and try the
// examples of the proposals that celset-placement follows: on a real API server with
// the kinds of Open Cluster Management, and with the controllers as they are
// deployed, under the RBAC rules in manifests/placement.
//
// The proposals "Select clusters with CEL expressions", "New Placement APIs" and
// "Placement extensible scheduling" of Open Cluster Management have examples, which
// are in manifests/examples/placement; every file there has a test. The latter two
// have user stories, each with a test of its name that sets up, acts, looks at the
// decision, and changes what the story says changes. The selector of the Kubernetes
// federation has examples in manifests/examples/federation.
//
// All tests of a run share one hub and run one after another: each has all
// ManagedClusters for itself, and leaves none.
//
//	go test ./test/integration/placement/...
//
// The first run builds the control plane, which takes minutes.
package placement
