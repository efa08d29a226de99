// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/cel/cluster"
)

// Names of the parts of a Placement, as used in conditions, metrics and events.
const (
	Predicate       = "Predicate"
	TaintToleration = "TaintToleration"
	Prioritizers    = "Prioritizer"
	Spread          = "Spread"
	DecisionGroups  = "DecisionGroup"
	// Selection is the part with the number, order and names of the decisions.
	Selection = "Selection"
)

// Misconfiguration is an invalid part of a Placement. The former decision stays in effect until the part is corrected.
type Misconfiguration struct {
	// Plugin is the name of the invalid part, for example Predicate or TaintToleration.
	Plugin string
	// Path is the path of the field in the Placement.
	Path *field.Path
	// Err says what is wrong and how to fix it. For CEL expressions it contains line and column.
	Err error
}

// Error returns "<plugin>:<path>: <what is wrong>". It may have several lines.
func (m *Misconfiguration) Error() string {
	return m.Plugin + ":" + m.Path.String() + ": " + m.Err.Error()
}

// Unwrap returns the error without plugin and path.
func (m *Misconfiguration) Unwrap() error { return m.Err }

// Misconfigurations lists the mistakes in one Placement, in the order of their discovery.
type Misconfigurations []*Misconfiguration

// Add adds a misconfiguration.
func (m *Misconfigurations) Add(plugin string, path *field.Path, message string) {
	*m = append(*m, &Misconfiguration{plugin, path, errors.New(message)})
}

// AddSelector adds one misconfiguration for each mistake in a selector. err is the result of compiling the selector. If err
// does not describe mistakes, AddSelector returns err.
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

// Message joins the texts of all misconfigurations.
func (m Misconfigurations) Message() string {
	texts := make([]string, len(m))
	for i, one := range m {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "\n")
}
