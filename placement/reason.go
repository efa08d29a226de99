// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Reason says why a cluster is not selected: it is one of [*Unmatched], [*Failed],
// [*Late], [*Untolerated], [*NoTopology], [*Skewed] and [*Surplus]. String is a sentence
// without its subject, "the cluster".
type Reason interface {
	fmt.Stringer
	reason()
}

// Filtered is what one filter did.
type Filtered struct {
	// Filter is its name: Predicate or TaintToleration.
	Filter string
	// Removed are the clusters that it removed, sorted by name.
	Removed []Removal
}

// Removal is a cluster that a filter removed.
type Removal struct {
	Cluster string
	Reason  Reason
}

// Unmatched is the reason of a cluster that no predicate matches.
type Unmatched struct {
	// Parts lead, one for each predicate, to the first part that does not match.
	Parts []*field.Path
}

// Failed is the reason of a cluster that no predicate matches, and that could not
// be evaluated with one of them.
type Failed struct {
	// Err joins the failures; each is a *cluster.Error.
	Err error
}

// Untolerated is the reason of a cluster with a taint that no toleration matches.
type Untolerated struct {
	Taint clusterv1.Taint
}

// NoTopology is the reason of a cluster without the label or claim that decisions
// must be spread over.
type NoTopology struct {
	// Constraint leads to the spread constraint.
	Constraint *field.Path
	// Key is that of the label or claim.
	Key string
}

// Skewed is the reason of a cluster whose topology has enough decisions.
type Skewed struct {
	// Constraint leads to the spread constraint.
	Constraint *field.Path
	// Key is that of the label or claim, Value its value.
	Key, Value string
	// Count is how many of its clusters are selected, Least how many of the topology
	// with the fewest, MaxSkew the most that these may differ.
	Count, Least, MaxSkew int
}

// Surplus is the reason of a cluster that is not among the wanted number.
type Surplus struct {
	// Wanted is spec.numberOfClusters.
	Wanted int
}

func (*Unmatched) reason()   {}
func (*Failed) reason()      {}
func (*Untolerated) reason() {}
func (*NoTopology) reason()  {}
func (*Skewed) reason()      {}
func (*Surplus) reason()     {}

// String names the parts.
func (u *Unmatched) String() string {
	parts := make([]string, len(u.Parts))
	for i, part := range u.Parts {
		parts[i] = part.String()
	}
	return "does not match " + strings.Join(parts, ", nor ")
}

// String is the errors.
func (f *Failed) String() string { return "can't be evaluated: " + f.Err.Error() }

// String names the taint.
func (u *Untolerated) String() string {
	return fmt.Sprintf("has the taint %s that is not tolerated", describeTaint(&u.Taint))
}

// String names the key.
func (n *NoTopology) String() string {
	return fmt.Sprintf("has no %q, which %s needs", n.Key, n.Constraint)
}

// String has all the numbers.
func (s *Skewed) String() string {
	return fmt.Sprintf("would exceed the maxSkew %d of %s: %d clusters are selected with %s=%s, and %d with another",
		s.MaxSkew, s.Constraint, s.Count, s.Key, s.Value, s.Least)
}

// String says how many are wanted.
func (s *Surplus) String() string {
	return fmt.Sprintf("is not among the first %d", s.Wanted)
}

func describeTaint(taint *clusterv1.Taint) string {
	if taint.Value == "" {
		return fmt.Sprintf("%s:%s", taint.Key, taint.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect)
}
