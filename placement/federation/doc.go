// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package federation understands the annotation with which objects of the
// Kubernetes federation (API v1beta1) choose clusters:
//
//	federation.alpha.kubernetes.io/cluster-selector: '[
//	  {"key": "location", "operator": "in", "values": ["europe"]},
//	  {"key": "environment", "operator": "==", "values": ["prod"]}]'
//
// A cluster is chosen if its labels satisfy all requirements. An object without
// the annotation, or with an empty list, is for every cluster.
//
//	selector, err := federation.ParseAnnotations(object.Annotations)
//	selector.Matches(labels.Set(managedCluster.Labels))
//	verdict, err := selector.Clusters().Match(ctx, cluster.New(managedCluster), cluster.Hub{})
//
// [Distribute] says what to do with an object in each cluster of a fleet.
package federation
