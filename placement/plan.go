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

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/cel/memo"
)

// TakeAnnotation of a Placement, with the value "true", gives it to celset on a hub
// where another scheduler decides the others.
const TakeAnnotation = "celset.dev/placement"

// Responsible tells whether a Placement is to be decided at all: it is not being
// deleted, and either it has [TakeAnnotation] or all are to be decided but those
// with [clusterv1beta1.PlacementDisableAnnotation]. The latter keeps other
// schedulers off, so on a shared hub a Placement has both. PlacementDecisions of a
// Placement that is nobody's business are left as they are.
func Responsible(placement *clusterv1beta1.Placement, all bool) bool {
	switch {
	case placement == nil || !placement.DeletionTimestamp.IsZero():
		return false
	case placement.Annotations[TakeAnnotation] == "true":
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

// Expensive tells which expressions may be too expensive on large clusters, by an estimate that assumes how large
// clusters are, and which have to be evaluated again and again as time passes. Each has the path of its expression.
// The error is that of the context.
func (s *Scheduler) Expensive(ctx context.Context, placement *clusterv1beta1.Placement) (all []*cluster.Error, err error) {
	plan, err := s.plan(ctx, placement)
	if err != nil {
		return nil, err
	}
	for _, selector := range plan.predicates {
		if selector != nil {
			all = append(all, s.environment.Expensive(selector)...)
		}
	}
	return all, nil
}
