// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
)

// filter returns the clusters that pass both filters, in order of their names, and
// those of the removed ones that could not be evaluated.
func (r *run) filter(verdicts []*verdict) (passed []*Candidate, failed []Removal) {
	passed = r.filterByPredicates(verdicts)
	for _, removal := range r.result.Filters[0].Removed {
		if _, ok := removal.Reason.(*Failed); ok {
			failed = append(failed, removal)
		}
	}
	passed = r.filterByTaints(passed)
	for i, c := range passed {
		c.index = i
	}
	return passed, failed
}

// unfiltered is the verdict of no predicates.
var unfiltered = &verdict{match: match{predicate: -1}}

// filterByPredicates makes a candidate of each available cluster that passes. There are no verdicts for a Placement
// without predicates.
func (r *run) filterByPredicates(verdicts []*verdict) []*Candidate {
	available, filtered := r.result.Available, Filtered{Filter: Predicate}
	passing := len(available.Clusters)
	for _, v := range verdicts {
		r.note(v)
		if v.reason != nil {
			passing--
		}
	}
	if removed := len(verdicts) - passing; removed > 0 {
		filtered.Removed = make([]Removal, 0, removed)
	}
	var preReleases []string
	made, passed := make([]Candidate, passing), make([]*Candidate, 0, passing)
	for i, cluster := range available.Clusters {
		v := unfiltered
		if len(verdicts) > 0 {
			v = verdicts[i]
		}
		if v.preRelease {
			preReleases = append(preReleases, fmt.Sprintf("%s (%.40q)", cluster.Name, cluster.Status.Version.Kubernetes))
		}
		if v.reason != nil {
			filtered.Removed = append(filtered.Removed, Removal{cluster.Name, v.reason})
			continue
		}
		c := &made[len(passed)]
		c.Cluster, c.ClusterSet, c.Predicate = cluster, available.Eligible[available.sets[i]], v.predicate
		c.place = int32(i)
		passed = append(passed, c)
	}
	r.result.Filters = append(r.result.Filters, filtered)
	r.report.warn(wellknown.ReasonVersionPreReleased, Predicate, "the versions of clusters %s are pre-releases, less than the release that an expression compares them with; "+
		`semver("1.31.0-0") is less than each version 1.31.0 with a suffix`, preReleases)
	return passed
}

// note adds what a verdict cost, and when it may be another one.
func (r *run) note(v *verdict) {
	r.result.TotalCost += v.cost
	if v.timed {
		r.result.Timed = true
		r.horizon.at(r.clock.Add(r.tick))
	}
	for _, read := range v.reads {
		if !read.until.IsZero() {
			r.horizon.after(read.until)
		}
	}
}

func (r *run) filterByTaints(candidates []*Candidate) []*Candidate {
	defer r.observe(KindFilter, TaintToleration)()
	filtered := Filtered{Filter: TaintToleration}
	passed := 0
	for _, c := range candidates {
		verdict := r.taints(c.Cluster)
		if verdict.keeps != nil {
			filtered.Removed = append(filtered.Removed, Removal{c.Cluster.Name, &Untolerated{*verdict.keeps}})
			continue
		}
		r.horizon.at(verdict.until.time)
		c.Avoided = verdict.avoids
		candidates[passed] = c
		passed++
	}
	r.result.Filters = append(r.result.Filters, filtered)
	return candidates[:passed]
}

func (r *run) taints(cluster *clusterv1.ManagedCluster) tainted {
	if len(cluster.Spec.Taints) == 0 {
		return tainted{}
	}
	_, selected := r.former.decisions[cluster.Name]
	return taints(cluster, r.placement.Spec.Tolerations, selected, r.now)
}

// tolerable tells whether the taints of an available cluster let it be selected. If
// they do, when that ends matters.
func (r *run) tolerable(name string) bool {
	clusters := r.result.Available.Clusters
	i, found := slices.BinarySearchFunc(clusters, name, func(c *clusterv1.ManagedCluster, name string) int {
		return strings.Compare(c.Name, name)
	})
	if !found {
		return false
	}
	verdict := r.taints(clusters[i])
	if verdict.keeps == nil {
		r.horizon.at(verdict.until.time)
	}
	return verdict.keeps == nil
}

func validateTolerations(tolerations []clusterv1beta1.Toleration, wrong *misconfigurations) {
	for i, toleration := range tolerations {
		path := field.NewPath("spec", "tolerations").Index(i)
		exists := toleration.Operator == clusterv1beta1.TolerationOpExists
		switch {
		case toleration.Key == "" && !exists:
			wrong.add(TaintToleration, path.Child("operator"), "If the key is empty, operator must be Exists.")
		case toleration.Value != "" && exists:
			wrong.add(TaintToleration, path.Child("value"), "If the operator is Exists, the value should be empty.")
		}
	}
}

// tainted is what the taints of a cluster mean for a Placement.
type tainted struct {
	// keeps is the first taint that keeps the cluster from being selected, avoids the
	// first one that makes it less wanted; nil if there is none.
	keeps, avoids *clusterv1.Taint
	// until is when a toleration ends and this may change, zero if none does.
	until horizon
}

// taints tells what the taints of a cluster mean. A cluster that is selected
// already stays in spite of the effect NoSelectIfNew.
func taints(cluster *clusterv1.ManagedCluster, tolerations []clusterv1beta1.Toleration, selected bool, now time.Time) tainted {
	var result tainted
	for i := range cluster.Spec.Taints {
		taint := &cluster.Spec.Taints[i]
		if selected && taint.Effect == clusterv1.TaintEffectNoSelectIfNew {
			continue
		}
		tolerated, until := tolerate(taint, tolerations, now)
		result.until.at(until)
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

// tolerate tells whether some toleration matches, and until when; zero is forever.
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

// endOf is when a toleration of a taint ends, if it does. What a Duration can't
// say, 292 years, does not end, and what is as far in the past has ended.
func endOf(toleration *clusterv1beta1.Toleration, taint *clusterv1.Taint) (end time.Time, ends bool) {
	const most = math.MaxInt64 / int64(time.Second)
	if toleration.TolerationSeconds == nil || *toleration.TolerationSeconds > most {
		return time.Time{}, false
	}
	return taint.TimeAdded.Add(time.Duration(max(*toleration.TolerationSeconds, -most)) * time.Second), true
}
