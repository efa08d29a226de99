// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/placement"
)

// Options select the parts of a decision that a report contains.
type Options struct {
	// Clusters are the names of the clusters to list. If it is empty, all clusters are listed.
	Clusters []string
	// Removed is the maximum number of removed clusters that are listed for each filter. 0 means no limit.
	Removed int
	// All is set if celset-placement decides all Placements, not only annotated ones.
	All bool
}

// New returns the report about a decision. err is the error of the decision, or nil.
func New(object *clusterv1beta1.Placement, result *placement.Result, err error, options Options) *Report {
	return maker{object, result, sets.New(options.Clusters...), options.Removed}.make(err, options.All)
}

// maker creates a Report.
type maker struct {
	object *clusterv1beta1.Placement
	result *placement.Result
	// only has the names of the clusters to list. If it is empty, all clusters are listed.
	only sets.Set[string]
	// most is the maximum number of removed clusters that are listed for each filter. 0 means no limit.
	most int
}

func (r maker) make(err error, all bool) *Report {
	object := r.object.DeepCopy()
	object.ManagedFields = nil
	result := &Report{
		Placement:    object,
		Responsible:  placement.Responsible(object, all),
		KeepsFormer:  r.result.KeepsFormer(),
		Undecided:    r.result.Decision == nil && r.result.First,
		Status:       r.result.ApplyTo(object.Status),
		Available:    r.available(),
		Filters:      r.filters(),
		Prioritizers: r.prioritizers(),
		Candidates:   r.candidates(),
		Groups:       r.groups(),
		Time:         metav1.Time{Time: r.result.Time()},
		Evaluated:    r.result.Evaluated,
		Cost:         r.result.Cost,
		named:        len(r.only) > 0,
	}
	if err != nil {
		result.Error = Clip(err.Error(), MaxMessage)
	}
	for _, m := range r.result.Misconfigurations {
		result.Misconfigurations = append(result.Misconfigurations,
			Misconfiguration{m.Plugin, m.Path.String(), Clip(m.Err.Error(), MaxMessage)})
	}
	for _, w := range r.result.Warnings {
		result.Warnings = append(result.Warnings, Warning(w))
	}
	if !r.result.Requeue.IsZero() {
		result.Requeue = &metav1.Time{Time: r.result.Requeue}
	}
	return result
}

// lists reports whether the report lists a cluster.
func (r maker) lists(cluster string) bool { return len(r.only) == 0 || r.only.Has(cluster) }

func (r maker) available() Available {
	result := Available{Bound: []string{}, Eligible: []string{}}
	missing := r.only.Clone()
	if from := r.result.Available; from != nil {
		result.Bound = append(result.Bound, from.Bound...)
		result.Eligible = append(result.Eligible, from.Eligible...)
		result.Clusters = len(from.Clusters)
		for _, cluster := range from.Clusters {
			missing.Delete(cluster.Name)
		}
	}
	result.Missing = sets.List(missing)
	return result
}

func (r maker) filters() []Filter {
	result := []Filter{}
	if r.result.Available == nil {
		return result
	}
	removed := sets.New[string]()
	for _, from := range r.result.Filters {
		filter := Filter{Name: from.Filter, Passed: []string{}, Removed: []Removal{}, Count: len(from.Removed)}
		for _, one := range from.Removed {
			removed.Insert(one.Cluster)
			if r.lists(one.Cluster) && (r.most == 0 || len(filter.Removed) < r.most) {
				filter.Removed = append(filter.Removed, Removal{one.Cluster, Clip(one.Reason.String(), MaxReason)})
			}
		}
		for _, cluster := range r.result.Available.Clusters {
			if r.lists(cluster.Name) && !removed.Has(cluster.Name) {
				filter.Passed = append(filter.Passed, cluster.Name)
			}
		}
		result = append(result, filter)
	}
	return result
}

func (r maker) prioritizers() []Prioritizer {
	result := []Prioritizer{}
	for i, from := range r.result.Prioritizers {
		prioritizer := Prioritizer{Name: from.Name, Weight: from.Weight, Scores: map[string]int64{}}
		for _, c := range r.result.Candidates {
			if r.lists(c.Cluster.Name) {
				prioritizer.Scores[c.Cluster.Name] = c.Scores[i]
			}
		}
		result = append(result, prioritizer)
	}
	return result
}

func (r maker) candidates() []Candidate {
	result := []Candidate{}
	for _, from := range r.result.Candidates {
		if !r.lists(from.Cluster.Name) {
			continue
		}
		candidate := Candidate{Cluster: from.Cluster.Name, Score: from.Total, Selected: from.Selected, ClusterSet: from.ClusterSet}
		if from.Reason != nil {
			candidate.Reason = Clip(from.Reason.String(), MaxReason)
		}
		if from.Predicate >= 0 {
			candidate.Predicate = &from.Predicate
		}
		if from.Avoided != nil {
			candidate.Avoided = from.Avoided.Key
		}
		result = append(result, candidate)
	}
	return result
}

func (r maker) groups() []Group {
	result := []Group{}
	if r.result.Decision == nil {
		return result
	}
	for i, from := range r.result.Decision.Groups {
		group := Group{Index: i, Name: from.Name}
		for _, slice := range from.Slices {
			clusters := slices.DeleteFunc(slices.Clone(slice.Decisions), func(d clusterv1beta1.ClusterDecision) bool { return !r.lists(d.ClusterName) })
			group.Decisions = append(group.Decisions, Decision{slice.Name, clusters})
		}
		result = append(result, group)
	}
	return result
}

// SetDefaults sets the defaults that the API server takes from the schema of the CustomResourceDefinition. body is the object
// as text. It shows whether a weight is absent or 0.
func SetDefaults(object *clusterv1beta1.Placement, body []byte) {
	spec := &object.Spec
	orDefault(&spec.SortBy, clusterv1beta1.PlacementSortByClusterName)
	orDefault(&spec.ScoreRateLimit, "1m")
	orDefault(&spec.PrioritizerPolicy.Mode, clusterv1beta1.PrioritizerPolicyModeAdditive)
	setWeights(spec.PrioritizerPolicy.Configurations, body)
	for i := range spec.Tolerations {
		orDefault(&spec.Tolerations[i].Operator, clusterv1beta1.TolerationOpEqual)
	}
	for i := range spec.SpreadPolicy.SpreadConstraints {
		term := &spec.SpreadPolicy.SpreadConstraints[i]
		orDefault(&term.MaxSkew, 1)
		orDefault(&term.WhenUnsatisfiable, clusterv1beta1.ScheduleAnyway)
	}
	orDefault(&spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup, intstr.FromString("100%"))
}

func setWeights(configurations []clusterv1beta1.PrioritizerConfig, body []byte) {
	var written struct {
		Spec struct {
			PrioritizerPolicy struct {
				Configurations []struct {
					Weight *int32 `json:"weight"`
				} `json:"configurations"`
			} `json:"prioritizerPolicy"`
		} `json:"spec"`
	}
	// body was decoded before. If it can't be decoded here, all weights count as absent.
	_ = yaml.Unmarshal(body, &written)
	for i := range configurations {
		if weights := written.Spec.PrioritizerPolicy.Configurations; i >= len(weights) || weights[i].Weight == nil {
			configurations[i].Weight = 1
		}
		if coordinate := configurations[i].ScoreCoordinate; coordinate != nil {
			orDefault(&coordinate.Type, clusterv1beta1.ScoreCoordinateTypeBuiltIn)
		}
	}
}

func orDefault[T comparable](value *T, otherwise T) {
	if *value == *new(T) {
		*value = otherwise
	}
}

// WithoutPredicate returns a copy of the Placement without the predicate of that index. ok is false if there is no such
// predicate.
func WithoutPredicate(object *clusterv1beta1.Placement, index int) (changed *clusterv1beta1.Placement, ok bool) {
	if index < 0 || index >= len(object.Spec.Predicates) {
		return nil, false
	}
	changed = object.DeepCopy()
	changed.Spec.Predicates = slices.Delete(changed.Spec.Predicates, index, index+1)
	return changed, true
}
