// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package profiles tests stories of a hub without Open Cluster Management. There a cluster manager writes ClusterProfiles of SIG
// Multicluster.
package profiles
