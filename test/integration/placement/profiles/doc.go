// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package profiles has no code of its own. Its tests tell stories of a hub without Open
// Cluster Management, where a cluster manager writes ClusterProfiles of SIG Multicluster: on
// a real API server, with the controller as celset-placement --inventory=ClusterProfile
// --profile-decisions has it, under the RBAC rules in manifests/placement and
// manifests/placement/profiles.
package profiles
