// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

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

// Misconfigurations are what is wrong with one Placement, in the order in which it was found.
type Misconfigurations []*Misconfiguration

// Add adds a misconfiguration.
func (m *Misconfigurations) Add(plugin string, path *field.Path, message string) {
	*m = append(*m, &Misconfiguration{plugin, path, errors.New(message)})
}

// AddSelector takes the errors of compiling a selector apart. It returns an error that is not about the
// selector.
func (m *Misconfigurations) AddSelector(plugin string, err error) error {
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

// Message joins the texts of all.
func (m Misconfigurations) Message() string {
	texts := make([]string, len(m))
	for i, one := range m {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "\n")
}
