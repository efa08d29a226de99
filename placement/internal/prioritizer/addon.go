// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package prioritizer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement/internal/candidate"
)

// addOnName returns the name of the prioritizer for an add-on score.
func addOnName(of *clusterv1beta1.AddOnScore) string {
	return "AddOn/" + of.ResourceName + "/" + of.ScoreName
}

// addOn is a prioritizer whose scores are values in AddOnPlacementScores.
type addOn struct{ of clusterv1beta1.AddOnScore }

// describe returns a sentence that says which clusters the prioritizer prefers.
func (a addOn) describe() string {
	return fmt.Sprintf("%s prefers clusters with a high score %s in the AddOnPlacementScore %s.", addOnName(&a.of), a.of.ScoreName, a.of.ResourceName)
}

// reads returns the inputs of the scores.
func (a addOn) reads() Reads { return Reads{Score: a.of.ResourceName} }

// score returns the named value in each cluster's AddOnPlacementScore. The score is 0 if the object or the value is missing, or
// if the object has expired.
func (a addOn) score(in *Inputs, candidates []*candidate.Candidate) ([]int64, error) {
	result := make([]int64, len(candidates))
	var expired, clamped []string
	there, found := sets.New[string](), false
	for i, c := range candidates {
		name := c.Cluster.Name
		object, err := in.Snapshot.Score(name, a.of.ResourceName)
		switch {
		case err != nil:
			return nil, err
		case object == nil:
			continue
		case in.expired(object):
			expired = append(expired, name+"/"+a.of.ResourceName)
		default:
			value := valueOf(object, a.of.ScoreName)
			if result[i] = min(max(value, MinScore), MaxScore); result[i] != value {
				clamped = append(clamped, fmt.Sprintf("%s/%s (%d)", name, a.of.ResourceName, value))
			}
		}
		if found = true; !there.Has(a.of.ScoreName) {
			for _, item := range object.Status.Scores {
				there.Insert(item.Name)
			}
		}
	}
	switch {
	case len(candidates) == 0 || there.Has(a.of.ScoreName):
	case !found:
		in.Found.AddMissingScore("no candidate has the AddOnPlacementScore", a.of.ResourceName, in.Snapshot.ScoreNames(candidate.ClustersIn(candidates)))
	default:
		in.Found.AddMissing(fmt.Sprintf("no candidate's AddOnPlacementScore %q contains the score", a.of.ResourceName), a.of.ScoreName, there)
	}
	in.Found.Warn(wellknown.ReasonScoreExpired, addOnName(&a.of), "AddOnPlacementScores %s expired, so they count as 0", expired)
	in.Found.WarnOutOfRange(wellknown.ReasonScoreOutOfRange, addOnName(&a.of),
		fmt.Sprintf("AddOnPlacementScores %%s are outside the range from %d to %d, so they count as the nearest limit", MinScore, MaxScore), clamped)
	return result, nil
}

// valueOf returns the last value with this name, or 0 if there is no such value.
func valueOf(object *clusterv1alpha1.AddOnPlacementScore, name string) int64 {
	for i := len(object.Status.Scores) - 1; i >= 0; i-- {
		if item := &object.Status.Scores[i]; item.Name == name {
			return int64(item.Value)
		}
	}
	return 0
}
