// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller keeps the PlacementDecisions of a hub as package placement
// decides them, on controller-runtime:
//
//	scheme := runtime.NewScheme()
//	err := controller.AddToScheme(scheme)
//	controller.Guard(config, nil)
//	mgr, err := manager.New(config, manager.Options{Scheme: scheme, Cache: controller.Cache()})
//	err = controller.Add(mgr, controller.Options{Workers: 4})
//	err = mgr.Start(ctx)
//
// # Which Placements
//
// Those with the annotation celset.dev/placement, so that it works on a hub
// where another scheduler decides the others, or with [Options.All] every one that
// is not disabled. The others and their decisions are left as they are, also when
// the annotation is taken away.
//
// # When a Placement is decided
//
// When it changes; when one of its PlacementDecisions does; when a ManagedCluster in
// a ManagedClusterSet bound to its namespace changes, or joins or leaves one; when a
// set or a binding changes; when an AddOnPlacementScore changes that its prioritizers
// or expressions read; and when a toleration or a score expires. One Placement is
// decided by one worker at a time, different ones by several, in turns of their
// namespaces.
//
// # How long that may take
//
// [Timeouts] bound evaluations. A Placement is evaluated for one turn; if that does not
// suffice it goes on in a second queue, which has one worker, and belongs there as long
// as it is expensive. When all its turns together take too long, its condition says so,
// and it waits, each time longer. [Guard] keeps what others have stored from taking time
// when it is read, and from being unreadable.
//
// # How decisions are written
//
// Only a decision that was made is written: with an error or a mistake in the
// Placement the PlacementDecisions stay, and the conditions say why. Before the first
// write the PlacementDecisions are read from the API server, not from the cache, and
// the order of the writes is that of [placement.Updates]: a cluster that stays
// selected is in some PlacementDecision at every moment, also if the controller dies
// between two writes, or is paused there while another one leads. Writes carry the version
// that they are based on, and a round of them ends at the first that fails, or finds an
// object that was not listed.
package controller
