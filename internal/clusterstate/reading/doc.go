// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reading reads the objects of package clusterstate from files, as kubectl does, and from clusters.
//
//	objects, err := reading.Files(filenames, stdin, namespace)
//	objects, err := reading.Cluster(ctx, client, namespace)
package reading
