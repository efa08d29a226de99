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

// Tolerations is the filter TaintToleration of one Placement.
type Tolerations struct {
	// Of are the tolerations.
	Of []clusterv1beta1.Toleration
	// Former is the former decision. A cluster that is in it stays selected in spite of the effect NoSelectIfNew.
	Former *hub.Former
	// Now is the time of the decision. A toleration with tolerationSeconds ends.
	Now time.Time
}

// Describe says in a sentence which clusters the filter removes.
func (*Tolerations) Describe() string {
	return finding.TaintToleration + " removes clusters with a taint that is not tolerated and keeps them from being selected."
}

// Filter returns the candidates whose taints are tolerated, in their order, and what it removed. It overwrites the
// list. next gets the times at which a toleration ends.
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

// Allows reports whether the taints of one of the available clusters let it be selected. The clusters are sorted by
// name. If a toleration allows it, next gets the time at which the toleration ends.
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

// taints returns what the taints of a cluster mean for the Placement.
func (t *Tolerations) taints(cluster *clusterv1.ManagedCluster) tainted {
	if len(cluster.Spec.Taints) == 0 {
		return tainted{}
	}
	return taints(cluster, t.Of, t.Former.Chose(cluster.Name), t.Now)
}

// ValidateTolerations adds what is wrong with tolerations.
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

// tainted says what the taints of a cluster mean for a Placement.
type tainted struct {
	// keeps is the first taint that keeps the cluster from being selected, avoids the
	// first one that makes it less wanted; nil if there is none.
	keeps, avoids *clusterv1.Taint
	// until is the earliest time at which a toleration ends, so that the above may change.
	until finding.Wakeup
}

// taints returns what the taints of a cluster mean. A cluster that is selected
// already stays selected in spite of the effect NoSelectIfNew.
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

// tolerate reports whether some toleration matches, and until when; zero is forever.
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

// matchesTaint reports whether a toleration is for a taint, whether or not it has ended.
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

// endOf returns the time at which a toleration of a taint ends, if it does. A toleration for more than 292 years, the
// longest Duration, does not end. One that ended more than 292 years before the taint was added has ended.
func endOf(toleration *clusterv1beta1.Toleration, taint *clusterv1.Taint) (end time.Time, ends bool) {
	const most = math.MaxInt64 / int64(time.Second)
	if toleration.TolerationSeconds == nil || *toleration.TolerationSeconds > most {
		return time.Time{}, false
	}
	return taint.TimeAdded.Add(time.Duration(max(*toleration.TolerationSeconds, -most)) * time.Second), true
}
