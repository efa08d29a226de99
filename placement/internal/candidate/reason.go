// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Reason says why a cluster is not selected. It is one of [*Unmatched], [*Failed], [*Late], [*Untolerated], [*NoTopology],
// [*Skewed] and [*Surplus]. String returns a sentence without its subject, which is "the cluster".
type Reason interface {
	fmt.Stringer
	reason()
}

// Unmatched means that no predicate matches the cluster.
type Unmatched struct {
	// Parts holds, for each predicate, the path of the first part of the predicate that does not match.
	Parts []*field.Path
}

// Failed means that no predicate matches the cluster and the evaluation of at least one predicate failed.
type Failed struct {
	// Err joins the errors of the failed predicates. Each error is a *cluster.Error.
	Err error
}

// Untolerated means that the cluster has a taint that no toleration matches.
type Untolerated struct {
	Taint clusterv1.Taint
}

// NoTopology means that the cluster lacks a label or claim that a spread constraint requires.
type NoTopology struct {
	// Constraint is the path of the spread constraint.
	Constraint *field.Path
	// Key is the key of the label or claim.
	Key string
}

// Skewed means that enough clusters with the same topology value are selected already.
type Skewed struct {
	// Constraint is the path of the spread constraint.
	Constraint *field.Path
	// Key is the key of the label or claim. Value is its value.
	Key, Value string
	// Count is the number of selected clusters with this value. Least is the smallest number for any value. MaxSkew is the maximum
	// difference that the constraint allows.
	Count, Least, MaxSkew int
}

// Surplus means that enough other clusters are selected.
type Surplus struct {
	// Wanted is spec.numberOfClusters.
	Wanted int
}

// Late means that the cluster was not evaluated in time.
type Late struct {
	// Expression is the path of the expression that was being evaluated. It is nil if the evaluation did not start.
	Expression *field.Path
	// Limit is the exceeded time limit. Alone is set if it is the limit of one evaluation, not of all evaluations together.
	Limit time.Duration
	Alone bool
}

func (*Unmatched) reason()   {}
func (*Failed) reason()      {}
func (*Untolerated) reason() {}
func (*NoTopology) reason()  {}
func (*Skewed) reason()      {}
func (*Surplus) reason()     {}
func (*Late) reason()        {}

// String names the parts that do not match.
func (u *Unmatched) String() string {
	parts := make([]string, len(u.Parts))
	for i, part := range u.Parts {
		parts[i] = part.String()
	}
	return "does not match " + strings.Join(parts, ", nor ")
}

// String returns a text with the errors.
func (f *Failed) String() string { return "can't be evaluated: " + f.Err.Error() }

// String names the taint.
func (u *Untolerated) String() string {
	return fmt.Sprintf("has the taint %s, which the Placement does not tolerate", taintText(&u.Taint))
}

// taintText returns a taint in the format of kubectl, KEY=VALUE:EFFECT.
func taintText(taint *clusterv1.Taint) string {
	if taint.Value == "" {
		return fmt.Sprintf("%s:%s", taint.Key, taint.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect)
}

// String names the key.
func (n *NoTopology) String() string {
	return fmt.Sprintf("has no %q, which %s needs", n.Key, n.Constraint)
}

// String returns a text with the counts and the maxSkew.
func (s *Skewed) String() string {
	return fmt.Sprintf("would exceed the maxSkew %d of %s: %d clusters are selected with %s=%s, but another value has only %d",
		s.MaxSkew, s.Constraint, s.Count, s.Key, s.Value, s.Least)
}

// String returns a text with the wanted number.
func (s *Surplus) String() string {
	if s.Wanted == 0 {
		return "is not selected: spec.numberOfClusters is 0"
	}
	return fmt.Sprintf("is not among the first %d", s.Wanted)
}

// String names the expression.
func (l *Late) String() string {
	switch {
	case l.Expression == nil:
		return "is not evaluated yet"
	case l.Alone:
		return fmt.Sprintf("can't be evaluated in time: %s takes longer than %s", l.Expression, l.Limit)
	default:
		return fmt.Sprintf("is not evaluated yet: %s did not end within %s, the limit for all clusters together", l.Expression, l.Limit)
	}
}

// SameReason reports whether the reasons of two verdicts are equal. It returns false for two failures, which name their
// clusters.
func SameReason(a, b Reason) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	one, is := a.(*Unmatched)
	other, isOther := b.(*Unmatched)
	return is && isOther && slices.Equal(one.Parts, other.Parts)
}
