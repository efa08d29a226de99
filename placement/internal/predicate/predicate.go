// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/memo"
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/deadline"
	"github.com/celset/celset/placement/internal/finding"
)

// Set holds the predicates of a Placement. A cluster matches the set if the set is empty, or if one of its predicates matches.
type Set struct {
	// Selectors holds one selector for each predicate. The selector of a predicate that could not be compiled is nil.
	Selectors []*cluster.Selector
	// releases holds the versions that expressions compare versions with (see [cluster.Selector.Releases]).
	releases sets.Set[string]
}

// Compile compiles the predicates of a Placement. It adds mistakes to wrong, and fails only if ctx is done.
func Compile(ctx context.Context, environment *cluster.Environment, spec *clusterv1beta1.PlacementSpec, wrong *finding.Misconfigurations) (Set, error) {
	result := Set{releases: sets.New[string]()}
	for i := range spec.Predicates {
		path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector")
		selector, err := environment.Compile(ctx, spec.Predicates[i].RequiredClusterSelector, path)
		if err := wrong.AddSelector(finding.Predicate, err); err != nil {
			return Set{}, err
		}
		result.Selectors = append(result.Selectors, selector)
		if selector != nil {
			result.releases = result.releases.Union(selector.Releases())
		}
	}
	return result, nil
}

// Match is the result of evaluating all predicates on one cluster.
type Match struct {
	// Predicate is the index of the first predicate that matches. It is -1 if no predicate matches, or if there are no predicates.
	Predicate int
	// Reason says why the cluster does not match. It is nil if the cluster matches.
	Reason candidate.Reason
	// Cost is the cost of all evaluations in CEL cost units.
	Cost uint64
	// Timed is set if an expression has read now().
	Timed bool
}

// Match evaluates the predicates in order until one matches. A predicate that fails does not match, just as CEL's || ignores an
// error on one side if the other side is true. If an evaluation takes too long, late is the error and result must not be used,
// because the predicate might match if it had more time.
func (p Set) Match(timer *deadline.Timer, of *clusterv1.ManagedCluster, hub cluster.Hub) (result Match, late error) {
	result = Match{Predicate: -1}
	if len(p.Selectors) == 0 {
		return result, nil
	}
	object, failures := cluster.New(of), []error(nil)
	var unmatched []*field.Path
	for i, selector := range p.Selectors {
		verdict, err := selector.Match(timer.Start(), object, hub)
		timer.Stop()
		result.Cost += verdict.Cost
		result.Timed = result.Timed || verdict.Timed
		switch {
		case deadline.In(err) != nil:
			return result, err
		case err != nil:
			failures = append(failures, err)
		case verdict.Matches:
			result.Predicate = i
			return result, nil
		default:
			unmatched = append(unmatched, verdict.Unmatched)
		}
	}
	if len(failures) > 0 {
		result.Reason = &candidate.Failed{Err: errors.Join(failures...)}
	} else {
		result.Reason = &candidate.Unmatched{Parts: unmatched}
	}
	return result, nil
}

// IsPreRelease reports whether the cluster runs a pre-release of a Kubernetes version that the predicates compare with.
func (p Set) IsPreRelease(cluster *clusterv1.ManagedCluster) bool {
	release, _, ok := strings.Cut(strings.TrimPrefix(cluster.Status.Version.Kubernetes, "v"), "-")
	return ok && p.releases.Has(release)
}

// ScoreNames returns the names of the AddOnPlacementScores that the predicates read.
func (p Set) ScoreNames() cluster.ScoreNames {
	result := cluster.ScoreNames{Names: sets.New[string]()}
	for _, selector := range p.Selectors {
		if selector != nil {
			names := selector.ScoreNames()
			result.Names = result.Names.Union(names.Names)
			result.Computed = result.Computed || names.Computed
		}
	}
	return result
}

// UnknownFields returns an error for each field that an expression reads but no ManagedCluster has.
func (p Set) UnknownFields() (all []*cluster.Error) {
	for _, selector := range p.Selectors {
		if selector != nil {
			all = append(all, selector.UnknownFields()...)
		}
	}
	return all
}

// Parts returns the compiled expressions with their sizes. A memory needs them to count shared expressions only once.
func (p Set) Parts() (parts []memo.Part) {
	for _, selector := range p.Selectors {
		if selector == nil {
			continue
		}
		for _, program := range selector.Programs() {
			parts = append(parts, memo.Part{Of: program, Bytes: program.Size()})
		}
	}
	return parts
}

// Doubts returns an error for each expression that may cost too much on large clusters, and for each unknown field.
func (p Set) Doubts(environment *cluster.Environment) (all []*cluster.Error) {
	for _, selector := range p.Selectors {
		if selector != nil {
			all = append(all, environment.Expensive(selector)...)
			all = append(all, selector.UnknownFields()...)
		}
	}
	return all
}
