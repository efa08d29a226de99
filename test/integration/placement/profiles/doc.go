// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package profiles tests stories of a hub without Open Cluster Management. On this hub, clusters are ClusterProfiles of SIG
// Multicluster, which a cluster manager writes.
package profiles
