// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
)

// Tolerations is the filter named TaintToleration, for one Placement.
type Tolerations struct {
	// Of lists the tolerations.
	Of []clusterv1beta1.Toleration
	// Former is the former decision. Taints with the effect NoSelectIfNew don't remove its clusters.
	Former *hub.Former
	// Now is the time of the decision. Tolerations with tolerationSeconds end at some time.
	Now time.Time
}

// Describe returns a sentence that says which clusters the filter removes.
func (*Tolerations) Describe() string {
	return finding.TaintToleration + " removes clusters with a taint that the Placement does not tolerate."
}

// Filter returns the candidates without an untolerated taint, in order, and the clusters that it removed. It reuses the slice
// candidates for its result. next receives the times at which tolerations end.
func (t *Tolerations) Filter(candidates []*candidate.Candidate, next *finding.Wakeup) ([]*candidate.Candidate, candidate.Filtered) {
	filtered := candidate.Filtered{Filter: finding.TaintToleration}
	passed := 0
	for _, c := range candidates {
		verdict := t.taints(c.Cluster)
		if verdict.keeps != nil {
			filtered.Removed = append(filtered.Removed, candidate.Removal{Cluster: c.Cluster.Name, Reason: &candidate.Untolerated{Taint: *verdict.keeps}})
			continue
		}
		next.At(verdict.until.Time)
		c.Avoided = verdict.avoids
		candidates[passed] = c
		passed++
	}
	return candidates[:passed], filtered
}

// Allows reports whether the taints of an available cluster permit its selection. available must be sorted by name. If only a
// toleration permits the selection, next receives the time at which the toleration ends.
func (t *Tolerations) Allows(name string, available []*clusterv1.ManagedCluster, next *finding.Wakeup) bool {
	i, found := slices.BinarySearchFunc(available, name, func(c *clusterv1.ManagedCluster, name string) int {
		return strings.Compare(c.Name, name)
	})
	if !found {
		return false
	}
	verdict := t.taints(available[i])
	if verdict.keeps == nil {
		next.At(verdict.until.Time)
	}
	return verdict.keeps == nil
}

// taints returns the effect of a cluster's taints on this Placement.
func (t *Tolerations) taints(cluster *clusterv1.ManagedCluster) tainted {
	if len(cluster.Spec.Taints) == 0 {
		return tainted{}
	}
	return taints(cluster, t.Of, t.Former.Chose(cluster.Name), t.Now)
}

// ValidateTolerations adds the mistakes in the tolerations to wrong.
func ValidateTolerations(tolerations []clusterv1beta1.Toleration, wrong *finding.Misconfigurations) {
	for i, toleration := range tolerations {
		path := field.NewPath("spec", "tolerations").Index(i)
		exists := toleration.Operator == clusterv1beta1.TolerationOpExists
		switch {
		case toleration.Key == "" && !exists:
			wrong.Add(finding.TaintToleration, path.Child("operator"), "If the key is empty, operator must be Exists.")
		case toleration.Value != "" && exists:
			wrong.Add(finding.TaintToleration, path.Child("value"), "If the operator is Exists, the value should be empty.")
		}
	}
}

// tainted is the effect of a cluster's taints on a Placement.
type tainted struct {
	// keeps is the first untolerated taint that prevents the selection. avoids is the first untolerated taint that lowers the
	// rank. Each may be nil.
	keeps, avoids *clusterv1.Taint
	// until is the earliest time at which a toleration ends. keeps and avoids may then change.
	until finding.Wakeup
}

// taints returns the effect of a cluster's taints. selected is true if the former decision selects the cluster, so that taints
// with the effect NoSelectIfNew have no effect.
func taints(cluster *clusterv1.ManagedCluster, tolerations []clusterv1beta1.Toleration, selected bool, now time.Time) tainted {
	var result tainted
	for i := range cluster.Spec.Taints {
		taint := &cluster.Spec.Taints[i]
		if selected && taint.Effect == clusterv1.TaintEffectNoSelectIfNew {
			continue
		}
		tolerated, until := tolerate(taint, tolerations, now)
		result.until.At(until)
		switch {
		case tolerated:
		case taint.Effect == clusterv1.TaintEffectPreferNoSelect:
			if result.avoids == nil {
				result.avoids = taint
			}
		case result.keeps == nil:
			result.keeps = taint
		}
	}
	return result
}

// tolerate reports whether one of the tolerations applies to the taint now, and until when. A zero until means forever.
func tolerate(taint *clusterv1.Taint, tolerations []clusterv1beta1.Toleration, now time.Time) (tolerated bool, until time.Time) {
	for i := range tolerations {
		toleration := &tolerations[i]
		if !matchesTaint(toleration, taint) {
			continue
		}
		end, ends := endOf(toleration, taint)
		switch {
		case !ends:
			return true, time.Time{}
		case now.Before(end):
			tolerated = true
			if end.After(until) {
				until = end
			}
		}
	}
	return tolerated, until
}

// matchesTaint reports whether a toleration applies to a taint, regardless of the time at which the toleration ends.
func matchesTaint(toleration *clusterv1beta1.Toleration, taint *clusterv1.Taint) bool {
	if toleration.Effect != "" && toleration.Effect != taint.Effect {
		return false
	}
	if toleration.Key != "" && toleration.Key != taint.Key {
		return false
	}
	switch toleration.Operator {
	case clusterv1beta1.TolerationOpExists:
		return true
	case "", clusterv1beta1.TolerationOpEqual:
		return toleration.Value == taint.Value
	default:
		return false
	}
}

// endOf returns the time at which the toleration of a taint ends. Durations end at 292 years: a toleration for a longer time
// never ends, and a toleration that would have ended longer before the taint was added has ended.
func endOf(toleration *clusterv1beta1.Toleration, taint *clusterv1.Taint) (end time.Time, ends bool) {
	const most = math.MaxInt64 / int64(time.Second)
	if toleration.TolerationSeconds == nil || *toleration.TolerationSeconds > most {
		return time.Time{}, false
	}
	return taint.TimeAdded.Add(time.Duration(max(*toleration.TolerationSeconds, -most)) * time.Second), true
}
