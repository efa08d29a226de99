// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package federation parses the annotation that selects clusters for objects of the Kubernetes federation (API v1beta1):
//
//	federation.alpha.kubernetes.io/cluster-selector: '[
//	  {"key": "location", "operator": "in", "values": ["europe"]},
//	  {"key": "environment", "operator": "==", "values": ["prod"]}]'
//
// A cluster is selected if its labels satisfy all requirements. An object without the annotation, or with an empty list,
// selects every cluster.
//
//	selector, err := federation.ParseAnnotations(object.Annotations)
//	selector.Matches(labels.Set(managedCluster.Labels))
//	verdict, err := selector.Clusters().Match(ctx, cluster.New(managedCluster), cluster.Hub{})
//
// [Distribute] returns the clusters that need the object and the clusters that must lose it.
package federation
