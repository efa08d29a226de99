// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/cel/memo"
)

// Responsible tells whether a Placement is to be decided at all: it is not being
// deleted, and either it has [wellknown.AnnotationPlacement] or all are to be decided but those
// with [clusterv1beta1.PlacementDisableAnnotation]. The latter keeps other
// schedulers off, so on a shared hub a Placement has both. PlacementDecisions of a
// Placement that is nobody's business are left as they are.
func Responsible(placement *clusterv1beta1.Placement, all bool) bool {
	switch {
	case placement == nil || !placement.DeletionTimestamp.IsZero():
		return false
	case placement.Annotations[wellknown.AnnotationPlacement] == "true":
		return true
	default:
		return all && placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] != "true"
	}
}

// plan is what the spec of a Placement means. It is not modified.
type plan struct {
	predicates     predicates
	prioritizers   []Prioritizer
	spread         []spreadConstraint
	groups         []group
	scoreRateLimit time.Duration
	// amounts are the resources that prioritizers read, balances is set if the decisions of other Placements matter.
	amounts  []clusterv1.ResourceName
	balances bool
	// reads are the AddOnPlacementScores that the predicates and prioritizers read.
	reads cluster.ScoreNames
	// releases are the versions that the predicates compare others with, see [cluster.Selector.Releases].
	releases sets.Set[string]
	// unknown are fields that expressions read and no ManagedCluster has.
	unknown []string
	// wrong is what could not be understood; if there is anything, the plan must not
	// be carried out.
	wrong misconfigurations
	// parts are the expressions as the memory counts them.
	parts []memo.Part
}

// plan compiles what the Placement says, for its namespace. The error is that of the context.
func (s *Scheduler) plan(ctx context.Context, placement *clusterv1beta1.Placement) (*plan, error) {
	spec, p := &placement.Spec, &plan{}
	if err := checkParts(spec); err != nil {
		p.wrong.add(Selection, field.NewPath("spec"), err.Error())
		return p, nil
	}
	var err error
	if p.predicates, err = compilePredicates(fairness.WithTenant(ctx, placement.Namespace), s.environment, spec, &p.wrong); err != nil {
		return nil, err
	}
	validateTolerations(spec.Tolerations, &p.wrong)
	p.prioritizers = prioritizersOf(&spec.PrioritizerPolicy, &p.wrong)
	p.spread = spreadConstraints(&spec.SpreadPolicy, &p.wrong)
	p.groups = groupsOf(s.environment, &spec.DecisionStrategy.GroupStrategy, &p.wrong)
	p.scoreRateLimit = selectionOf(spec, &p.wrong)
	p.measure()
	for _, prioritizer := range p.prioritizers {
		p.balances = p.balances || prioritizer.Name == Balance
		if resource := amountsOf[prioritizer.Name]; resource != "" {
			p.amounts = append(p.amounts, resource)
		}
	}
	p.reads = p.predicates.scoreNames()
	p.releases = sets.New[string]()
	for _, selector := range p.predicates {
		if selector != nil {
			p.releases = p.releases.Union(selector.Releases())
			for _, unknown := range selector.UnknownFields() {
				p.unknown = append(p.unknown, unknown.Error())
			}
		}
	}
	for _, configuration := range spec.PrioritizerPolicy.Configurations {
		if c := configuration.ScoreCoordinate; c != nil && c.AddOn != nil && c.Type != clusterv1beta1.ScoreCoordinateTypeBuiltIn {
			p.reads.Names.Insert(c.AddOn.ResourceName)
		}
	}
	return p, nil
}

// selectionOf checks the fields that say how many clusters are selected and how
// they are listed, and returns how often scores may be updated.
func selectionOf(spec *clusterv1beta1.PlacementSpec, wrong *misconfigurations) time.Duration {
	path := field.NewPath("spec")
	if n := spec.NumberOfClusters; n != nil && *n < 0 {
		wrong.add(Selection, path.Child("numberOfClusters"), fmt.Sprintf("the number %d is negative; leave it out to select all", *n))
	}
	switch spec.SortBy {
	case "", clusterv1beta1.PlacementSortByClusterName, clusterv1beta1.PlacementSortByScore:
	default:
		wrong.add(Selection, path.Child("sortBy"), fmt.Sprintf("unknown order %q; use ClusterName or Score", spec.SortBy))
	}
	if spec.ScoreRateLimit == "" {
		return defaultScoreRateLimit
	}
	limit, err := time.ParseDuration(spec.ScoreRateLimit)
	if err != nil || limit < 0 {
		wrong.add(Selection, path.Child("scoreRateLimit"),
			fmt.Sprintf("%q is no duration; write a number and a unit, such as 1m", spec.ScoreRateLimit))
	}
	return limit
}

// wrongMetadata checks what a change of does not make a new generation.
func wrongMetadata(placement *clusterv1beta1.Placement) misconfigurations {
	var wrong misconfigurations
	validateTieBreak(placement, &wrong)
	for _, message := range validation.IsValidLabelValue(placement.Name) {
		wrong.add(Selection, field.NewPath("metadata", "name"),
			fmt.Sprintf("%q is not a label value, as which PlacementDecisions have it: %s", placement.Name, message))
	}
	return wrong
}

// Names of what a Placement configures, as conditions, metrics and events have
// them.
const (
	Predicate       = "Predicate"
	TaintToleration = "TaintToleration"
	Prioritizers    = "Prioritizer"
	Spread          = "Spread"
	DecisionGroups  = "DecisionGroup"
	// Selection is the number, order and naming of decisions.
	Selection = "Selection"
)

// Misconfiguration is something in a Placement that can't be understood. Until it
// is mended the former decision stands.
type Misconfiguration struct {
	// Plugin is what it configures: Predicate, TaintToleration, ...
	Plugin string
	// Path leads to it in the Placement.
	Path *field.Path
	// Err says what is wrong, for CEL expressions at which line and column, and what
	// to do about it.
	Err error
}

// Error returns "<plugin>:<path>: <what is wrong>". It may have several lines.
func (m *Misconfiguration) Error() string {
	return m.Plugin + ":" + m.Path.String() + ": " + m.Err.Error()
}

// Unwrap returns the error without plugin and path.
func (m *Misconfiguration) Unwrap() error { return m.Err }

// misconfigurations collects them.
type misconfigurations []*Misconfiguration

func (m *misconfigurations) add(plugin string, path *field.Path, message string) {
	*m = append(*m, &Misconfiguration{plugin, path, errors.New(message)})
}

// addSelector takes the errors of compiling a selector apart. It returns an error that is not about the
// selector.
func (m *misconfigurations) addSelector(plugin string, err error) error {
	joined, wrong := err.(interface{ Unwrap() []error })
	if !wrong {
		return err
	}
	for _, err := range joined.Unwrap() {
		part, isPart := errors.AsType[*cluster.Error](err)
		if !isPart {
			return err
		}
		*m = append(*m, &Misconfiguration{plugin, part.Path, part.Err})
	}
	return nil
}

func (m misconfigurations) message() string {
	texts := make([]string, len(m))
	for i, one := range m {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "\n")
}

// Validate returns what is wrong with a Placement, nothing if it can be decided.
// Admission that refuses what it returns refuses nothing else. The error is that of the context.
func (s *Scheduler) Validate(ctx context.Context, placement *clusterv1beta1.Placement) ([]*Misconfiguration, error) {
	if placement == nil {
		return misconfigurations{{Selection, field.NewPath("metadata"), errors.New("there is no Placement")}}, nil
	}
	plan, err := s.plan(ctx, placement)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(plan.wrong), wrongMetadata(placement)...), nil
}

// Doubts returns what is valid and hardly meant: expressions that may be too expensive on large clusters, by an estimate
// that assumes how large clusters are, and fields that no ManagedCluster has. Each has the path of its expression. The
// error is that of the context.
func (s *Scheduler) Doubts(ctx context.Context, placement *clusterv1beta1.Placement) (all []*cluster.Error, err error) {
	plan, err := s.plan(ctx, placement)
	if err != nil {
		return nil, err
	}
	for _, selector := range plan.predicates {
		if selector != nil {
			all = append(all, s.environment.Expensive(selector)...)
			all = append(all, selector.UnknownFields()...)
		}
	}
	return all, nil
}

// predicates are ORed; no predicate at all matches everything.
type predicates []*cluster.Selector

// hasExpressions reports whether a Placement has an expression, which takes time.
func hasExpressions(spec *clusterv1beta1.PlacementSpec) bool {
	return slices.ContainsFunc(spec.Predicates, func(p clusterv1beta1.ClusterPredicate) bool {
		return len(p.RequiredClusterSelector.CelSelector.CelExpressions) > 0
	})
}

// match is the verdict of all predicates on one cluster.
type match struct {
	// predicate is the index of the first one that matches, -1 if none does or if
	// there is none.
	predicate int
	// reason is nil if the cluster matches.
	reason Reason
	// cost is that of all evaluations, in CEL cost units.
	cost uint64
	// timed is set if an expression has read now().
	timed bool
}

// What a Placement says is compiled for it, so that all of it together is bounded.
const (
	// MaxExpressions is how many CEL expressions a Placement may have, and MaxExpressionBytes how many
	// bytes they may have together.
	MaxExpressions     = 64
	MaxExpressionBytes = 256 << 10
	// MaxParts is how many predicates a Placement may have, and how many prioritizers and decision groups. Each is
	// applied to each cluster.
	MaxParts = 128
	// MaxValues is how many labels, requirements with their values, tolerations and sets it may have together.
	MaxValues = 4096
)

// checkParts returns an error if the Placement has too many parts. The API server bounds its bytes only, and most parts may
// be empty.
func checkParts(spec *clusterv1beta1.PlacementSpec) error {
	groups := spec.DecisionStrategy.GroupStrategy.DecisionGroups
	for _, of := range []struct {
		name  string
		count int
	}{{"predicates", len(spec.Predicates)}, {"prioritizers", len(spec.PrioritizerPolicy.Configurations)}, {"decision groups", len(groups)}} {
		if of.count > MaxParts {
			return fmt.Errorf("there are %d %s, at most %d are looked at: use fewer, or several Placements", of.count, of.name, MaxParts)
		}
	}
	values := len(spec.Tolerations) + len(spec.ClusterSets)
	for i := range spec.Predicates {
		of := &spec.Predicates[i].RequiredClusterSelector
		values += valuesIn(&of.LabelSelector, &of.ClaimSelector)
	}
	for i := range groups {
		values += valuesIn(&groups[i].ClusterSelector.LabelSelector, &groups[i].ClusterSelector.ClaimSelector)
	}
	if values > MaxValues {
		return fmt.Errorf("there are %d labels, requirements, values, tolerations and sets together, at most %d are looked at: use fewer, or several Placements",
			values, MaxValues)
	}
	return nil
}

func valuesIn(labels *metav1.LabelSelector, claims *clusterv1beta1.ClusterClaimSelector) int {
	values := len(labels.MatchLabels)
	for _, requirements := range [][]metav1.LabelSelectorRequirement{labels.MatchExpressions, claims.MatchExpressions} {
		for i := range requirements {
			values += 1 + len(requirements[i].Values)
		}
	}
	return values
}

// checkTexts returns an error if the expressions are too many, or too long together.
func checkTexts(spec *clusterv1beta1.PlacementSpec) error {
	expressions, bytes := 0, 0
	for i := range spec.Predicates {
		for _, text := range spec.Predicates[i].RequiredClusterSelector.CelSelector.CelExpressions {
			expressions, bytes = expressions+1, bytes+len(text)
		}
	}
	if expressions <= MaxExpressions && bytes <= MaxExpressionBytes {
		return nil
	}
	return fmt.Errorf("there are %d expressions with %d bytes together, at most %d with %d bytes are compiled for a Placement: use fewer or shorter ones, or several Placements",
		expressions, bytes, MaxExpressions, MaxExpressionBytes)
}

func compilePredicates(ctx context.Context, environment *cluster.Environment, spec *clusterv1beta1.PlacementSpec, wrong *misconfigurations) (predicates, error) {
	if err := checkTexts(spec); err != nil {
		wrong.add(Predicate, field.NewPath("spec", "predicates"), err.Error())
		return nil, nil
	}
	var result predicates
	for i := range spec.Predicates {
		path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector")
		selector, err := environment.Compile(ctx, spec.Predicates[i].RequiredClusterSelector, path)
		if err := wrong.addSelector(Predicate, err); err != nil {
			return nil, err
		}
		result = append(result, selector)
	}
	return result, nil
}

// match asks the predicates in order until one matches. A failed one does not
// match, as an error in CEL's || does not matter if the other side is true. One that
// takes too long says nothing: with more time it might match. late is its failure, and then the
// rest says nothing either.
func (p predicates) match(alarm *alarm, of *clusterv1.ManagedCluster, hub cluster.Hub) (result match, late error) {
	result = match{predicate: -1}
	if len(p) == 0 {
		return result, nil
	}
	object, failures := cluster.New(of), []error(nil)
	var unmatched []*field.Path
	for i, selector := range p {
		verdict, err := selector.Match(alarm.start(), object, hub)
		alarm.stop()
		result.cost += verdict.Cost
		result.timed = result.timed || verdict.Timed
		switch {
		case deadlineIn(err) != nil:
			return result, err
		case err != nil:
			failures = append(failures, err)
		case verdict.Matches:
			result.predicate = i
			return result, nil
		default:
			unmatched = append(unmatched, verdict.Unmatched)
		}
	}
	if len(failures) > 0 {
		result.reason = &Failed{errors.Join(failures...)}
	} else {
		result.reason = &Unmatched{unmatched}
	}
	return result, nil
}

// isPreRelease reports whether the version of a cluster is less than a release with its numbers that the predicates
// compare versions with.
func (p *plan) isPreRelease(cluster *clusterv1.ManagedCluster) bool {
	release, _, ok := strings.Cut(strings.TrimPrefix(cluster.Status.Version.Kubernetes, "v"), "-")
	return ok && p.releases.Has(release)
}

// scoreNames are the AddOnPlacementScores that any of the predicates reads.
func (p predicates) scoreNames() cluster.ScoreNames {
	result := cluster.ScoreNames{Names: sets.New[string]()}
	for _, selector := range p {
		if selector != nil {
			names := selector.ScoreNames()
			result.Names = result.Names.Union(names.Names)
			result.Computed = result.Computed || names.Computed
		}
	}
	return result
}
