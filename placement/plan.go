// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/cel/memo"
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/decision"
	"github.com/celset/celset/placement/internal/filter"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/predicate"
	"github.com/celset/celset/placement/internal/prioritizer"
	"github.com/celset/celset/placement/internal/spread"
)

// plan is what the spec of a Placement means. It is not modified.
type plan struct {
	predicates     predicate.Set
	prioritizers   []prioritizer.Prioritizer
	spread         []spread.Constraint
	groups         []decision.GroupSelector
	scoreRateLimit time.Duration
	// amounts are the resources that prioritizers read, balances is set if the decisions of other Placements matter.
	amounts  []clusterv1.ResourceName
	balances bool
	// reads are the AddOnPlacementScores that the predicates and prioritizers read.
	reads cluster.ScoreNames
	// unknown are fields that expressions read and no ManagedCluster has.
	unknown []string
	// wrong is what could not be understood; if there is anything, the plan must not
	// be carried out.
	wrong finding.Misconfigurations
	// parts are the expressions as the memory counts them.
	parts []memo.Part
}

// planOf compiles what the Placement says, for its namespace. The error is that of the context.
func planOf(ctx context.Context, environment *cluster.Environment, placement *clusterv1beta1.Placement) (*plan, error) {
	spec, p := &placement.Spec, &plan{}
	if err := checkParts(spec); err != nil {
		p.wrong.Add(finding.Selection, field.NewPath("spec"), err.Error())
		return p, nil
	}
	if err := p.compile(fairness.WithTenant(ctx, placement.Namespace), environment, spec); err != nil {
		return nil, err
	}
	filter.ValidateTolerations(spec.Tolerations, &p.wrong)
	p.prioritizers = prioritizer.FromPolicy(&spec.PrioritizerPolicy, &p.wrong)
	p.spread = spread.Constraints(&spec.SpreadPolicy, &p.wrong)
	p.groups = decision.GroupsOf(environment, &spec.DecisionStrategy.GroupStrategy, &p.wrong)
	p.scoreRateLimit = selectionOf(spec, &p.wrong)
	for _, one := range p.prioritizers {
		p.balances = p.balances || one.Name == prioritizer.Balance
		if resource := prioritizer.AmountsOf[one.Name]; resource != "" {
			p.amounts = append(p.amounts, resource)
		}
	}
	for _, configuration := range spec.PrioritizerPolicy.Configurations {
		if c := configuration.ScoreCoordinate; c != nil && c.AddOn != nil && c.Type != clusterv1beta1.ScoreCoordinateTypeBuiltIn {
			p.reads.Names.Insert(c.AddOn.ResourceName)
		}
	}
	return p, nil
}

// compile compiles the predicates, unless there are too many expressions.
func (p *plan) compile(ctx context.Context, environment *cluster.Environment, spec *clusterv1beta1.PlacementSpec) (err error) {
	if err := checkTexts(spec); err != nil {
		p.wrong.Add(finding.Predicate, field.NewPath("spec", "predicates"), err.Error())
	} else if p.predicates, err = predicate.Compile(ctx, environment, spec, &p.wrong); err != nil {
		return err
	}
	p.reads, p.parts = p.predicates.ScoreNames(), p.predicates.Parts()
	for _, unknown := range p.predicates.UnknownFields() {
		p.unknown = append(p.unknown, unknown.Error())
	}
	return nil
}

// readsScores reports whether a decision depends on AddOnPlacementScores.
func (p *plan) readsScores() bool { return p.reads.Computed || p.reads.Names.Len() > 0 }

// selectionOf checks the fields that say how many clusters are selected and how
// they are listed, and returns how often scores may be updated.
func selectionOf(spec *clusterv1beta1.PlacementSpec, wrong *finding.Misconfigurations) time.Duration {
	path := field.NewPath("spec")
	if n := spec.NumberOfClusters; n != nil && *n < 0 {
		wrong.Add(finding.Selection, path.Child("numberOfClusters"), fmt.Sprintf("the number %d is negative; leave it out to select all", *n))
	}
	switch spec.SortBy {
	case "", clusterv1beta1.PlacementSortByClusterName, clusterv1beta1.PlacementSortByScore:
	default:
		wrong.Add(finding.Selection, path.Child("sortBy"), fmt.Sprintf("unknown order %q; use ClusterName or Score", spec.SortBy))
	}
	if spec.ScoreRateLimit == "" {
		return decision.DefaultScoreRateLimit
	}
	limit, err := time.ParseDuration(spec.ScoreRateLimit)
	if err != nil || limit < 0 {
		wrong.Add(finding.Selection, path.Child("scoreRateLimit"),
			fmt.Sprintf("%q is no duration; write a number and a unit, such as 1m", spec.ScoreRateLimit))
	}
	return limit
}

// wrongMetadata checks what a change of does not make a new generation.
func wrongMetadata(placement *clusterv1beta1.Placement) finding.Misconfigurations {
	var wrong finding.Misconfigurations
	validateTieBreak(placement, &wrong)
	for _, message := range validation.IsValidLabelValue(placement.Name) {
		wrong.Add(finding.Selection, field.NewPath("metadata", "name"),
			fmt.Sprintf("%q is not a label value, as which PlacementDecisions have it: %s", placement.Name, message))
	}
	return wrong
}

func validateTieBreak(placement *clusterv1beta1.Placement, wrong *finding.Misconfigurations) {
	switch value := placement.Annotations[wellknown.AnnotationTieBreak]; value {
	case "", candidate.TieBreakName, candidate.TieBreakRandom:
	default:
		wrong.Add(finding.Selection, field.NewPath("metadata", "annotations").Key(wellknown.AnnotationTieBreak),
			fmt.Sprintf("unknown order %q; use %s or %s", value, candidate.TieBreakName, candidate.TieBreakRandom))
	}
}

// hasExpressions reports whether a Placement has an expression, which takes time.
func hasExpressions(spec *clusterv1beta1.PlacementSpec) bool {
	return slices.ContainsFunc(spec.Predicates, func(p clusterv1beta1.ClusterPredicate) bool {
		return len(p.RequiredClusterSelector.CelSelector.CelExpressions) > 0
	})
}
