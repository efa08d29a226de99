// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics measures the plugin DynamicResourcesCEL: searches for devices, evaluations of CEL device constraints, pods
// that are refused before a search, and the claims of the cluster.
//
//	measured, err := metrics.Default() // on /metrics of kube-scheduler
//	environment, err := device.NewEnvironment(cel.Config{Observer: measured})
//	measured.WatchClaims(manager.ResourceClaims().List)
//	...
//	end := measured.ObserveAllocation(claims, false)
//	results, stats, err := a.AllocateWithStats(ctx, node, claims)
//	end(results != nil, stats, err)
//
// Package allocator has no clock and no registry. It returns counts, and the environment of its expressions takes an observer.
// This package adds the clock and the registry.
//
// docs/METRICS.md describes each metric, and a test compares the page with the metrics. No label has the name of an object, so
// the number of time series does not grow with the cluster.
package metrics
