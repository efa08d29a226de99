// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterstate has the objects that an allocation of devices depends on: claims, templates, classes, slices, nodes and
// pods. It reads them from a cluster, from files, or from both. It never changes a cluster.
//
//	objects, err := clusterstate.ReadFiles(filenames, stdin, namespace)
//	objects, err := clusterstate.ReadCluster(ctx, client, namespace)
//	state := clusterstate.New(objects)
//	subject, err := state.Subject("pod/train", "default") // the pod and its claims
//	problem := state.Problem(subject, features)
//	a, err := problem.NewAllocator(ctx)
//	results, err := a.Allocate(ctx, state.Nodes()[0], problem.Claims)
//
// [State.Owners] returns the claims that have each device.
package clusterstate
