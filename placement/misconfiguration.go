// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
)

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

// addSelector takes the errors of compiling a selector apart.
func (m *misconfigurations) addSelector(plugin string, path *field.Path, err error) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		var part *cluster.Error
		if errors.As(err, &part) {
			*m = append(*m, &Misconfiguration{plugin, part.Path, part.Err})
		} else {
			*m = append(*m, &Misconfiguration{plugin, path, err})
		}
	}
}

func (m misconfigurations) message() string {
	texts := make([]string, len(m))
	for i, one := range m {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "\n")
}

// Validate returns what is wrong with a Placement, nothing if it can be decided.
// Admission that refuses what it returns refuses nothing else.
func (s *Scheduler) Validate(placement *clusterv1beta1.Placement) []*Misconfiguration {
	if placement == nil {
		return misconfigurations{{Selection, field.NewPath("metadata"), errors.New("there is no Placement")}}
	}
	return append(slices.Clone(s.plan(placement).wrong), wrongMetadata(placement)...)
}

// Expensive tells which expressions may be too expensive on large clusters, by an estimate that assumes how large
// clusters are, and which have to be evaluated again and again as time passes. Each has the path of its expression.
func (s *Scheduler) Expensive(placement *clusterv1beta1.Placement) (all []*cluster.Error) {
	for _, selector := range s.plan(placement).predicates {
		if selector != nil {
			all = append(all, s.environment.Expensive(selector)...)
		}
	}
	return all
}
