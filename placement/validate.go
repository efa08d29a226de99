// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/plan"
)

// Responsible reports whether celset must decide a Placement: the Placement has [wellknown.AnnotationPlacement] and is not
// being deleted. If all is set, other Placements count, too, unless they have [clusterv1beta1.PlacementDisableAnnotation]. This
// annotation keeps other schedulers away, so on a shared hub a Placement has both annotations. The PlacementDecisions of other
// Placements must not be changed.
func Responsible(placement *clusterv1beta1.Placement, all bool) bool {
	switch {
	case placement == nil || !placement.DeletionTimestamp.IsZero():
		return false
	case placement.Annotations[wellknown.AnnotationPlacement] == "true":
		return true
	default:
		return all && placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] != "true"
	}
}

// Validate returns the mistakes in a Placement. A Placement without mistakes can always be decided, so an admission webhook may
// reject exactly the Placements with mistakes. Validate fails only if ctx is done.
func (s *Scheduler) Validate(ctx context.Context, placement *clusterv1beta1.Placement) ([]*finding.Misconfiguration, error) {
	if placement == nil {
		return finding.Misconfigurations{{Plugin: finding.Selection, Path: field.NewPath("metadata"), Err: errors.New("the Placement is missing")}}, nil
	}
	compiled, err := plan.Compile(ctx, s.environment, placement)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(compiled.Wrong), plan.WrongMetadata(placement)...), nil
}

// Doubts returns probable mistakes in a valid Placement: fields that no ManagedCluster has, and expressions whose estimated
// cost on large clusters is too high. Each error has the path of its expression. Doubts fails only if ctx is done.
func (s *Scheduler) Doubts(ctx context.Context, placement *clusterv1beta1.Placement) ([]*cluster.Error, error) {
	compiled, err := plan.Compile(ctx, s.environment, placement)
	if err != nil {
		return nil, err
	}
	return compiled.Predicates.Doubts(s.environment), nil
}
