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

// Options say what is checked. Give what the controller has.
type Options struct {
	// All checks all Placements but disabled ones, not only those with
	// the annotation celset.dev/placement.
	All bool
	// Scheduler is how they are decided.
	Scheduler placement.Config
}

// Checker checks Placements. The same Placements have the same verdict: it reads
// nothing else. It is safe for concurrent use.
type Checker struct {
	scheduler *placement.Scheduler
	all       bool
}

// Verdict is what there is to say of a Placement.
type Verdict struct {
	// Errors refuse it. They are all there are, however many.
	Errors field.ErrorList
	// Warnings don't. Each is one line.
	Warnings []string
}

// NewChecker returns a Checker.
func NewChecker(options Options) (*Checker, error) {
	scheduler, err := placement.NewScheduler(options.Scheduler)
	if err != nil {
		return nil, fmt.Errorf("admission of Placements: %w", err)
	}
	return &Checker{scheduler, options.All}, nil
}

// Check judges a new Placement: there is an error for each misconfiguration. The error is that of
// the context.
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

// CheckUpdate judges an update: there is an error for each misconfiguration that old
// does not have, and a warning for each that it has. The error is that of the context.
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
		result.Warnings = append(result.Warnings, "was misconfigured before: "+one.line())
	}
	return result, err
}

// warnings are about what can be decided, and is unlikely to be meant. They are in
// order, and nothing if the Placement is not to be decided.
func (c *Checker) warnings(ctx context.Context, object *clusterv1beta1.Placement) []string {
	if !placement.Responsible(object, c.all) {
		return nil
	}
	var result []string
	if !c.all && object.Annotations[clusterv1beta1.PlacementDisableAnnotation] != "true" {
		result = append(result, fmt.Sprintf(
			"metadata.annotations: other schedulers on the hub decide this Placement, too; keep them off with %s: \"true\"",
			clusterv1beta1.PlacementDisableAnnotation))
	}
	if n := object.Spec.NumberOfClusters; n != nil && *n == 0 {
		result = append(result, "spec.numberOfClusters: 0 selects no cluster; leave it out to select all")
	}
	for i := range object.Spec.Predicates {
		if len(object.Spec.Predicates) > 1 && empty(&object.Spec.Predicates[i].RequiredClusterSelector) {
			result = append(result, fmt.Sprintf(
				"spec.predicates[%d].requiredClusterSelector: it is empty and matches every cluster, so the other predicates make no difference", i))
		}
	}
	// Without an answer nobody waits for the warnings.
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
