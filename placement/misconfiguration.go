// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
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
