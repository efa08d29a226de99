// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller keeps the PlacementDecisions of a hub up to date. It runs package placement on controller-runtime:
//
//	scheme := runtime.NewScheme()
//	err := controller.AddToScheme(scheme)
//	controller.Guard(config, nil)
//	mgr, err := manager.New(config, manager.Options{Scheme: scheme, Cache: controller.Cache()})
//	err = controller.Add(mgr, controller.Options{Workers: 4})
//	err = mgr.Start(ctx)
//
// # Selected Placements
//
// The controller decides Placements with the annotation celset.dev/placement, so that another scheduler can decide the other
// Placements of the hub. With [Options.All], it decides every Placement that is not disabled. It leaves all other Placements
// and their PlacementDecisions unchanged, even after the annotation was removed.
//
// # When a Placement is decided
//
// A Placement is decided when one of these objects changes:
//
//   - the Placement or one of its PlacementDecisions
//   - a ManagedCluster in a ManagedClusterSet bound to the Placement's namespace, or a cluster's membership in such a set
//   - a ManagedClusterSet or a ManagedClusterSetBinding
//   - an AddOnPlacementScore that the Placement's prioritizers or expressions read
//
// A Placement is also decided when a toleration or a score expires. Several workers decide different Placements at the same
// time, and namespaces take turns. No two workers decide the same Placement at the same time.
//
// # Time limits
//
// [Timeouts] limit evaluations. A Placement is evaluated for at most one turn at a time. If a turn is too short, the Placement
// continues in a second queue, which has one worker, and stays there while it is expensive. If all its turns together take too
// long, a condition of the Placement reports that, and the controller retries with growing delays. [Guard] filters stored
// objects that can't be decoded or take long to decode.
//
// # How decisions are written
//
// The controller writes complete decisions only. If an error or a mistake in the Placement prevents a decision, the
// PlacementDecisions stay unchanged and the conditions say why. Before its first write for a Placement, the controller reads
// the PlacementDecisions from the API server instead of the cache. It writes in the order of [placement.Updates]: a cluster
// that stays selected is in some PlacementDecision at every moment. This holds even if the controller dies or pauses between
// two writes while another replica leads. Each write carries the version that it is based on. A series of writes ends at the
// first write that fails or finds an object that was not listed.
package controller
