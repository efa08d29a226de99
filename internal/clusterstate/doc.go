// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterstate is what allocating devices depends on, as one looks at it from
// outside: claims, templates, classes, slices, nodes and pods, read from a cluster, from
// files, or from both, without changing anything.
//
//	objects, err := clusterstate.ReadFiles(filenames, stdin, namespace)
//	objects, err := clusterstate.ReadCluster(ctx, client, namespace)
//	state := clusterstate.New(objects)
//	subject, err := state.Subject("pod/train")     // the claims it needs
//	problem := state.Problem(subject, features)
//	a, err := problem.NewAllocator(ctx)
//	results, err := a.Allocate(ctx, state.Nodes()[0], problem.Claims)
//
// A [State] knows for each device who has it ([State.Owners]).
package clusterstate
