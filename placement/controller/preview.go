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

// Preview decides Placements as the controller does, on the hub as a cache has it,
// and writes nothing. It needs not be the leader, and remembers nothing: who asks for
// one has no effect on what the controller decides, nor on later answers. It is safe
// for concurrent use.
type Preview struct {
	reader    client.Reader
	inventory inventory.Inventory
	scheduler *placement.Scheduler
	timeout   time.Duration
	now       func() time.Time
}

// NewPreview returns a Preview that reads from a cache with the options of [Cache]. Of
// the options those count that say how Placements are decided: Scheduler, which should
// have no observer, so that metrics tell of the controller only, Timeouts, Inventory and Now.
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

// Placement returns a Placement, or an error of the API machinery, NotFound for one.
func (p *Preview) Placement(ctx context.Context, key types.NamespacedName) (*clusterv1beta1.Placement, error) {
	result := &clusterv1beta1.Placement{}
	if err := p.reader.Get(ctx, key, result); err != nil {
		return nil, err
	}
	return result, nil
}

// Schedule decides a Placement, which needs not be on the hub: its former decisions
// are those of the Placement there with its namespace and name. It does so at a time, with
// all objects as they are now; zero is the time by the clock. The evaluations may take
// as long as the controller lets them take in one decision, all at once. Errors are those
// of [placement.Scheduler.Schedule]; without a result the hub could not be read.
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
	// Schedulers remember by UID and generation, and these may be anything in an object
	// that somebody wrote. Nothing is remembered of what has no generation.
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

// decisions are counted anew, because only the leader is told of their changes.
func (p *Preview) decisions(ctx context.Context) (*placement.Decisions, error) {
	var list clusterv1beta1.PlacementDecisionList
	if err := p.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list PlacementDecisions: %w", err)
	}
	return placement.NewDecisions(pointers(list.Items)...), nil
}
