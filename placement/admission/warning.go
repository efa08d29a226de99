// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

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
	all, _ := c.scheduler.Expensive(ctx, object)
	for _, expensive := range all {
		result = append(result, expensive.Error())
	}
	return result
}

func empty(s *clusterv1beta1.ClusterSelector) bool {
	return len(s.LabelSelector.MatchLabels) == 0 && len(s.LabelSelector.MatchExpressions) == 0 &&
		len(s.ClaimSelector.MatchExpressions) == 0 && len(s.CelSelector.CelExpressions) == 0
}
