// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

// Options select the Placements to check, and configure the checks. They must be the same as the options of the controller.
type Options struct {
	// All includes every Placement that is not disabled. If it is false, only Placements with the annotation celset.dev/placement
	// are checked.
	All bool
	// Scheduler configures the scheduler that validates Placements.
	Scheduler placement.Config
}

// Checker checks Placements. Its verdict depends on the Placement alone, not on other objects. Checker is safe for concurrent
// use.
type Checker struct {
	scheduler *placement.Scheduler
	all       bool
}

// Verdict is the result of checking a Placement.
type Verdict struct {
	// Errors are the reasons to reject the Placement. All mistakes are listed.
	Errors field.ErrorList
	// Warnings don't reject the Placement. Each warning is one line.
	Warnings []string
}

// NewChecker returns a Checker with these options.
func NewChecker(options Options) (*Checker, error) {
	scheduler, err := placement.NewScheduler(options.Scheduler)
	if err != nil {
		return nil, fmt.Errorf("admission of Placements: %w", err)
	}
	return &Checker{scheduler, options.All}, nil
}

// Check checks a new Placement. The verdict has an error for each misconfiguration. Check itself fails only if ctx is done.
func (c *Checker) Check(ctx context.Context, object *clusterv1beta1.Placement) (Verdict, error) {
	if !placement.Responsible(object, c.all) {
		return Verdict{}, nil
	}
	result := Verdict{Warnings: c.warnings(ctx, object)}
	wrong, err := c.mistakes(ctx, object)
	for _, one := range wrong {
		result.Errors = append(result.Errors, one.fieldError())
	}
	return result, err
}

// CheckUpdate checks an update of a Placement. The verdict has an error for each new misconfiguration, and a warning for each
// misconfiguration that old has, too. CheckUpdate itself fails only if ctx is done.
func (c *Checker) CheckUpdate(ctx context.Context, old, object *clusterv1beta1.Placement) (Verdict, error) {
	if !placement.Responsible(object, c.all) {
		return Verdict{}, nil
	}
	former := c.warnings(ctx, old)
	result := Verdict{Warnings: slices.DeleteFunc(c.warnings(ctx, object), func(text string) bool { return slices.Contains(former, text) })}
	wrong, err := c.mistakes(ctx, object)
	if err != nil || len(wrong) == 0 {
		return result, err
	}
	before, err := c.mistakes(ctx, old)
	stored := map[identity]int{}
	for _, one := range before {
		stored[one.identity()]++
	}
	for _, one := range wrong {
		if stored[one.identity()] == 0 {
			result.Errors = append(result.Errors, one.fieldError())
			continue
		}
		stored[one.identity()]--
		result.Warnings = append(result.Warnings, "was already misconfigured: "+one.line())
	}
	return result, err
}

// warnings returns remarks about fields that are valid but probably not intended. It returns nil if celset doesn't decide the
// Placement.
func (c *Checker) warnings(ctx context.Context, object *clusterv1beta1.Placement) []string {
	if !placement.Responsible(object, c.all) {
		return nil
	}
	var result []string
	if !c.all && object.Annotations[clusterv1beta1.PlacementDisableAnnotation] != "true" {
		result = append(result, fmt.Sprintf(
			"metadata.annotations: another placement controller on the hub may decide this Placement, too; to prevent this, add the annotation %s: \"true\"",
			clusterv1beta1.PlacementDisableAnnotation))
	}
	if n := object.Spec.NumberOfClusters; n != nil && *n == 0 {
		result = append(result, "spec.numberOfClusters: 0 selects no cluster; to select all clusters, remove the field")
	}
	for i := range object.Spec.Predicates {
		if len(object.Spec.Predicates) > 1 && empty(&object.Spec.Predicates[i].RequiredClusterSelector) {
			result = append(result, fmt.Sprintf(
				"spec.predicates[%d].requiredClusterSelector: the selector is empty and matches every cluster, so the other predicates have no effect; remove the empty predicate, or remove the others", i))
		}
	}
	// An error means that the request was canceled, and then no warnings are needed.
	all, _ := c.scheduler.Doubts(ctx, object)
	for _, doubt := range all {
		result = append(result, doubt.Error())
	}
	return result
}

func empty(s *clusterv1beta1.ClusterSelector) bool {
	return len(s.LabelSelector.MatchLabels) == 0 && len(s.LabelSelector.MatchExpressions) == 0 &&
		len(s.ClaimSelector.MatchExpressions) == 0 && len(s.CelSelector.CelExpressions) == 0
}
