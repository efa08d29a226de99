// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics measures what the plugin DynamicResourcesCEL does: searches for
// devices, evaluations of CEL device constraints, pods that are refused before there
// is a search, and which claims there are.
//
//	measured, err := metrics.Default() // those that kube-scheduler shows on /metrics
//	environment, err := device.NewEnvironment(cel.Config{Observer: measured})
//	measured.WatchClaims(manager.ResourceClaims().List)
//	...
//	end := measured.ObserveAllocation(claims, false)
//	results, stats, err := a.AllocateWithStats(ctx, node, claims)
//	end(results != nil, stats, err)
//
// Package allocator has no clock and knows no registry: it returns counts, and the
// environment of its expressions takes an observer. This package adds the clock and
// the registry.
//
// docs/METRICS.md describes each metric. A test compares the two, so the page is
// where to look. No label has the name of an object: the number of time series does
// not grow with the cluster.
package metrics
