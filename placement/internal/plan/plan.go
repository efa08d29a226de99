// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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

// Plan is the compiled spec of a Placement. It is immutable.
type Plan struct {
	Predicates     predicate.Set
	Prioritizers   []prioritizer.Prioritizer
	Spread         []spread.Constraint
	Groups         []decision.GroupSelector
	ScoreRateLimit time.Duration
	// Amounts lists the resources whose amounts prioritizers compare. ReadsOthers is set if a prioritizer reads the decisions of
	// other Placements.
	Amounts     []clusterv1.ResourceName
	ReadsOthers bool
	// Reads names the AddOnPlacementScores that the predicates and prioritizers read.
	Reads cluster.ScoreNames
	// Unknown holds a message for each field that an expression reads but no ManagedCluster has.
	Unknown []string
	// Wrong lists the mistakes in the spec. If there are mistakes, the plan must not be used to decide.
	Wrong finding.Misconfigurations
	// Parts lists the compiled expressions with their sizes. The memory counts expressions that several Placements share only
	// once.
	Parts []memo.Part
}

// Compile compiles the spec of a Placement. Namespaces take turns in compiling. Compile fails only if ctx is done.
func Compile(ctx context.Context, environment *cluster.Environment, placement *clusterv1beta1.Placement) (*Plan, error) {
	spec, p := &placement.Spec, &Plan{}
	if err := checkParts(spec); err != nil {
		p.Wrong.Add(finding.Selection, field.NewPath("spec"), err.Error())
		return p, nil
	}
	if err := p.compile(fairness.WithTenant(ctx, placement.Namespace), environment, spec); err != nil {
		return nil, err
	}
	filter.ValidateTolerations(spec.Tolerations, &p.Wrong)
	p.Prioritizers = prioritizer.FromPolicy(&spec.PrioritizerPolicy, &p.Wrong)
	p.Spread = spread.Constraints(&spec.SpreadPolicy, &p.Wrong)
	p.Groups = decision.GroupsOf(environment, &spec.DecisionStrategy.GroupStrategy, &p.Wrong)
	p.ScoreRateLimit = selectionOf(spec, &p.Wrong)
	for _, one := range p.Prioritizers {
		reads := one.Reads()
		p.ReadsOthers = p.ReadsOthers || reads.Others
		if reads.Amount != "" {
			p.Amounts = append(p.Amounts, reads.Amount)
		}
		if reads.Score != "" {
			p.Reads.Names.Insert(reads.Score)
		}
	}
	return p, nil
}

// compile compiles the predicates, unless there are too many expressions.
func (p *Plan) compile(ctx context.Context, environment *cluster.Environment, spec *clusterv1beta1.PlacementSpec) (err error) {
	if err := checkTexts(spec); err != nil {
		p.Wrong.Add(finding.Predicate, field.NewPath("spec", "predicates"), err.Error())
	} else if p.Predicates, err = predicate.Compile(ctx, environment, spec, &p.Wrong); err != nil {
		return err
	}
	p.Reads, p.Parts = p.Predicates.ScoreNames(), p.Predicates.Parts()
	for _, unknown := range p.Predicates.UnknownFields() {
		p.Unknown = append(p.Unknown, unknown.Error())
	}
	return nil
}

// ReadsScores reports whether the predicates or prioritizers read AddOnPlacementScores.
func (p *Plan) ReadsScores() bool { return p.Reads.Computed || p.Reads.Names.Len() > 0 }

// selectionOf checks the fields for the number and order of the selected clusters. It returns the minimum time between two
// updates of scores in PlacementDecisions.
func selectionOf(spec *clusterv1beta1.PlacementSpec, wrong *finding.Misconfigurations) time.Duration {
	path := field.NewPath("spec")
	if n := spec.NumberOfClusters; n != nil && *n < 0 {
		wrong.Add(finding.Selection, path.Child("numberOfClusters"), fmt.Sprintf("the number %d is negative; to select all clusters, remove the field", *n))
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
			fmt.Sprintf("%q is not a duration; use a number and a unit, such as 1m", spec.ScoreRateLimit))
	}
	return limit
}

// WrongMetadata returns the mistakes in the metadata of a Placement. A plan is valid for one generation, and a change of
// metadata does not change the generation. So these mistakes can't be in the plan.
func WrongMetadata(placement *clusterv1beta1.Placement) finding.Misconfigurations {
	var wrong finding.Misconfigurations
	validateTieBreak(placement, &wrong)
	for _, message := range validation.IsValidLabelValue(placement.Name) {
		wrong.Add(finding.Selection, field.NewPath("metadata", "name"),
			fmt.Sprintf("%q is not a valid label value, but PlacementDecisions have the name in a label: %s", placement.Name, message))
	}
	return wrong
}

// validateTieBreak checks the annotation that decides the order of candidates with equal totals.
func validateTieBreak(placement *clusterv1beta1.Placement, wrong *finding.Misconfigurations) {
	switch value := placement.Annotations[wellknown.AnnotationTieBreak]; value {
	case "", candidate.TieBreakName, candidate.TieBreakRandom:
	default:
		wrong.Add(finding.Selection, field.NewPath("metadata", "annotations").Key(wellknown.AnnotationTieBreak),
			fmt.Sprintf("unknown order %q; use %s or %s", value, candidate.TieBreakName, candidate.TieBreakRandom))
	}
}

// HasExpressions reports whether a Placement has CEL expressions, which take time to compile.
func HasExpressions(spec *clusterv1beta1.PlacementSpec) bool {
	return slices.ContainsFunc(spec.Predicates, func(p clusterv1beta1.ClusterPredicate) bool {
		return len(p.RequiredClusterSelector.CelSelector.CelExpressions) > 0
	})
}
