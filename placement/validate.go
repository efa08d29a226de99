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

// Responsible reports whether a Placement is to be decided. A Placement that is being deleted
// is not. Any other is decided if it has [wellknown.AnnotationPlacement], or if all are decided
// and it does not have [clusterv1beta1.PlacementDisableAnnotation]. The latter keeps other
// schedulers off, so that on a shared hub a Placement has both. PlacementDecisions of other
// Placements are left as they are.
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

// Validate returns what is wrong with a Placement, nothing if it can be decided.
// Admission that refuses what it returns refuses nothing else. The error is that of the context.
func (s *Scheduler) Validate(ctx context.Context, placement *clusterv1beta1.Placement) ([]*finding.Misconfiguration, error) {
	if placement == nil {
		return finding.Misconfigurations{{Plugin: finding.Selection, Path: field.NewPath("metadata"), Err: errors.New("there is no Placement")}}, nil
	}
	compiled, err := plan.Compile(ctx, s.environment, placement)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(compiled.Wrong), plan.WrongMetadata(placement)...), nil
}

// Doubts returns what is valid and probably a mistake: expressions that may be too expensive on large clusters, by an
// estimate of the sizes of clusters, and fields that no ManagedCluster has. Each has the path of its expression. The error
// is that of the context.
func (s *Scheduler) Doubts(ctx context.Context, placement *clusterv1beta1.Placement) ([]*cluster.Error, error) {
	compiled, err := plan.Compile(ctx, s.environment, placement)
	if err != nil {
		return nil, err
	}
	return compiled.Predicates.Doubts(s.environment), nil
}
