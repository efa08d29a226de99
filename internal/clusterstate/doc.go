// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterstate has the objects that an allocation of devices depends on: claims, templates, classes, slices, nodes and
// pods. It decodes them from YAML or JSON. Package reading reads them from files and from clusters.
//
//	documents, err := clusterstate.Decode("claims.yaml", text)
//	err = objects.Add(documents[0], namespace)
//	state := clusterstate.New(objects)
//	subject, err := state.Subject("pod/train", "default") // the pod and its claims
//	problem := state.Problem(subject, features)
//	a, err := problem.NewAllocator(ctx)
//	results, err := a.Allocate(ctx, state.Nodes()[0], problem.Claims)
//
// [State.Owners] returns the claims that have each device.
package clusterstate
