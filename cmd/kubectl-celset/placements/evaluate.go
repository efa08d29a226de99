// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"context"
	"fmt"
	"time"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
)

// Evaluate decides the Placement with the clusters of the hub. It does nothing if there are no clusters or the verdict already
// has errors. It adds the selected clusters to the verdict. It warns of failing expressions, and if the Placement selects no
// cluster.
func (h *Hub) Evaluate(ctx context.Context, object *clusterv1beta1.Placement, verdict *Verdict, now time.Time) error {
	if len(h.clusters) == 0 || len(verdict.Errors) > 0 {
		return nil
	}
	answer, err := h.Decide(ctx, object, now, Options{})
	if err != nil {
		return err
	}
	verdict.Clusters, verdict.Selected = &answer.Available.Clusters, answer.Selected
	for _, wrong := range answer.Misconfigurations {
		verdict.Errors = append(verdict.Errors, fmt.Sprintf("%s: %s", wrong.Field, wrong.Message))
	}
	satisfied := ""
	for _, condition := range answer.Status.Conditions {
		switch condition.Type {
		case wellknown.ConditionEvaluationFailed:
			if condition.Status == "True" {
				verdict.Warnings = append(verdict.Warnings, condition.Message)
			}
		case clusterv1beta1.PlacementConditionSatisfied:
			satisfied = condition.Message
		}
	}
	if len(answer.Selected) == 0 {
		verdict.Warnings = append(verdict.Warnings, "it selects no cluster: "+satisfied)
	}
	return nil
}
