// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package profiles tells stories of a hub without Open Cluster Management, where a cluster manager writes
// ClusterProfiles of SIG Multicluster.
package profiles
