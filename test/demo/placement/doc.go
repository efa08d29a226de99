// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement shows, on a running API server, what celset does for Placements
// of Open Cluster Management: 200 clusters of three clouds, selected by CEL, moved
// when one is tainted, ranked by scores and spread over regions.
//
//	err := placement.Run(ctx, placement.Options{
//		Config: cp.RESTConfig(), Controller: controllerConfig, RBAC: manifest, Out: os.Stdout,
//	})
//
// [OnHub] is for a demo with clusters of its own.
//
// It runs the controller in the process, with the rights that it is deployed with.
// Whatever it says about the outcome it has read back from the API server and checked
// with plain Go, in which there is no CEL; if something is not so, Run fails.
package placement
