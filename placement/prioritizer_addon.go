// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func addOnName(of *clusterv1beta1.AddOnScore) string {
	return "AddOn/" + of.ResourceName + "/" + of.ScoreName
}

// addOn is what the AddOnPlacementScore of a cluster says; 0 if it is missing, says
// nothing or is expired.
func addOn(of clusterv1beta1.AddOnScore) scorer {
	return func(r *run, candidates []*Candidate) ([]int64, error) {
		result := make([]int64, len(candidates))
		var expired, clamped []string
		for i, c := range candidates {
			name := c.Cluster.Name
			object, err := r.snapshot.score(name, of.ResourceName)
			switch {
			case err != nil:
				return nil, err
			case object == nil:
			case r.expired(object):
				expired = append(expired, name+"/"+of.ResourceName)
			default:
				value := valueOf(object, of.ScoreName)
				if result[i] = min(max(value, MinScore), MaxScore); result[i] != value {
					clamped = append(clamped, fmt.Sprintf("%s/%s (%d)", name, of.ResourceName, value))
				}
			}
		}
		r.report.warn(ReasonScoreExpired, addOnName(&of), "AddOnPlacementScores %s expired; they count as 0", expired)
		r.report.outOfRange(ReasonScoreOutOfRange, addOnName(&of),
			fmt.Sprintf("AddOnPlacementScores %%s are not from %d to %d; they count as the nearest of these", MinScore, MaxScore), clamped)
		return result, nil
	}
}

// expired tells whether scores don't hold any more, and remembers when they won't.
func (r *run) expired(object *clusterv1alpha1.AddOnPlacementScore) bool {
	until := object.Status.ValidUntil
	switch {
	case until == nil:
		return false
	case r.now.After(until.Time):
		return true
	default:
		r.horizon.after(until.Time)
		return false
	}
}

// valueOf returns 0 if there is no score of that name, and the last one of several.
func valueOf(object *clusterv1alpha1.AddOnPlacementScore, name string) int64 {
	for i := len(object.Status.Scores) - 1; i >= 0; i-- {
		if item := &object.Status.Scores[i]; item.Name == name {
			return int64(item.Value)
		}
	}
	return 0
}
