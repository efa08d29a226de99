// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/inventory"
)

// Preview decides Placements as the controller does, but writes nothing. It reads objects from a cache, and the process need
// not be the leader. Preview stores nothing, so it affects neither the controller's decisions nor later previews. It is safe
// for concurrent use.
type Preview struct {
	reader    client.Reader
	inventory inventory.Inventory
	scheduler *placement.Scheduler
	timeout   time.Duration
	now       func() time.Time
}

// NewPreview returns a Preview that reads from a cache with the options of [Cache]. Preview uses only the options Scheduler,
// Timeouts, Inventory and Now. Scheduler should have no observer, so that metrics count only the controller's decisions.
func NewPreview(reader client.Reader, options Options) (*Preview, error) {
	timeouts := options.Timeouts.orDefaults()
	result := &Preview{reader: reader, inventory: options.Inventory, timeout: timeouts.Total, now: options.Now}
	if result.inventory == nil {
		result.inventory = inventory.ManagedClusters{}
	}
	if result.now == nil {
		result.now = time.Now
	}
	var err error
	if result.scheduler, err = newScheduler(options.Scheduler, timeouts); err != nil {
		return nil, fmt.Errorf("preview of placement: %w", err)
	}
	return result, nil
}

// Placement returns a Placement from the cache. If it does not exist, apierrors.IsNotFound is true for the error.
func (p *Preview) Placement(ctx context.Context, key types.NamespacedName) (*clusterv1beta1.Placement, error) {
	result := &clusterv1beta1.Placement{}
	if err := p.reader.Get(ctx, key, result); err != nil {
		return nil, err
	}
	return result, nil
}

// Schedule decides a Placement, which need not exist on the hub. It uses the hub's current objects and the current
// PlacementDecisions for this name and namespace. at is the time of the decision, zero for now. The evaluations may take the
// controller's total time for one decision, without turns. Schedule returns the errors of [placement.Scheduler.Schedule]. The
// result is nil if the hub could not be read.
func (p *Preview) Schedule(ctx context.Context, object *clusterv1beta1.Placement, at time.Time) (*placement.Result, error) {
	decisions, err := p.decisions(ctx)
	if err != nil {
		return nil, err
	}
	clusters, err := p.inventory.Clusters(ctx, p.reader)
	if err != nil {
		return nil, err
	}
	scores, err := collectScores(ctx, p.reader)
	if err != nil {
		return nil, err
	}
	snapshot, err := snapshotOf(ctx, p.reader, object.Namespace, clusters, scores, decisions)
	if err != nil {
		return nil, err
	}
	// The scheduler stores results by UID and generation, and a user may set both in a preview. For an object without a generation
	// nothing is stored.
	unknown := object.DeepCopy()
	unknown.Generation = 0
	limited, cancel := placement.WithDeadline(ctx, p.timeout, p.timeout)
	defer cancel()
	if at.IsZero() {
		at = p.now()
	}
	result, err := p.scheduler.Schedule(limited, unknown, snapshot, at)
	for i := range result.Conditions {
		result.Conditions[i].ObservedGeneration = object.Generation
	}
	return result, err
}

// decisions lists all PlacementDecisions for each preview, because only the leader has an up-to-date ledger.
func (p *Preview) decisions(ctx context.Context) (*placement.Decisions, error) {
	var list clusterv1beta1.PlacementDecisionList
	if err := p.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list PlacementDecisions: %w", err)
	}
	return placement.NewDecisions(pointers(list.Items)...), nil
}
