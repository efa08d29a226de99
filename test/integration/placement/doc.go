// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement tests the stories and examples of the proposals that celset-placement follows. It uses a real API server
// with the kinds of Open Cluster Management, under the RBAC rules in manifests/placement. Every file in
// manifests/examples/placement and manifests/examples/federation has a test, and every user story has a test with its name.
//
// All tests share one hub and run one after another. Each test creates all ManagedClusters that exist during the test, and
// deletes them.
package placement
