// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/cel/cluster"
)

// ClusterSelectorAnnotation is the name of the annotation. Its value is a JSON list of [Requirement]s.
const ClusterSelectorAnnotation = "federation.alpha.kubernetes.io/cluster-selector"

// Requirement is one element of the annotation.
type Requirement struct {
	// Key is a label key.
	Key string `json:"key"`
	// Operator is !, DoesNotExist, exists or Exists without values; =, ==, !=, gt, Gt, >, lt, Lt or < with one value; or in, In,
	// notin or NotIn with at least one value.
	Operator string `json:"operator"`
	// Values are label values. gt and lt compare integers.
	Values []string `json:"values,omitempty"`
}

// operators maps the names of operators, which are case-sensitive. If the cluster lacks the label, != and notin are satisfied,
// but gt and lt are not. gt and lt are not satisfied either if the label's value is not an integer.
var operators = map[string]selection.Operator{
	"!": selection.DoesNotExist, "DoesNotExist": selection.DoesNotExist,
	"=": selection.Equals, "==": selection.DoubleEquals,
	"in": selection.In, "In": selection.In,
	"!=":    selection.NotEquals,
	"notin": selection.NotIn, "NotIn": selection.NotIn,
	"exists": selection.Exists, "Exists": selection.Exists,
	"gt": selection.GreaterThan, "Gt": selection.GreaterThan, ">": selection.GreaterThan,
	"lt": selection.LessThan, "Lt": selection.LessThan, "<": selection.LessThan,
}

// Selector is a parsed annotation. It is safe for concurrent use. The zero value matches no cluster.
type Selector struct {
	labels labels.Selector
}

// Everything returns a selector that matches every cluster.
func Everything() Selector { return Selector{labels.Everything()} }

// ParseAnnotations returns the selector in the annotations of an object.
func ParseAnnotations(annotations map[string]string) (Selector, error) {
	text, ok := annotations[ClusterSelectorAnnotation]
	if !ok {
		return Everything(), nil
	}
	return Parse(text)
}

// Parse parses the value of the annotation. The error names the requirement that is wrong.
func Parse(text string) (Selector, error) {
	path := field.NewPath("metadata", "annotations").Key(ClusterSelectorAnnotation)
	var requirements []Requirement
	if err := json.Unmarshal([]byte(text), &requirements); err != nil {
		return Selector{}, fmt.Errorf("%s: must be a JSON list of objects with key, operator and values: %w", path, err)
	}
	result := labels.NewSelector()
	for i, requirement := range requirements {
		parsed, err := requirement.parse(path.Index(i))
		if err != nil {
			return Selector{}, err
		}
		result = result.Add(*parsed)
	}
	return Selector{result}, nil
}

func (r Requirement) parse(path *field.Path) (*labels.Requirement, error) {
	operator, ok := operators[r.Operator]
	if !ok {
		return nil, fmt.Errorf("%s: %q is not one of the operators ! DoesNotExist exists Exists = == != in In notin NotIn gt Gt > lt Lt <",
			path.Child("operator"), r.Operator)
	}
	return labels.NewRequirement(r.Key, operator, r.Values, field.WithPath(path))
}

// Matches reports whether the selector selects a cluster with these labels.
func (s Selector) Matches(of labels.Labels) bool { return s.orNothing().Matches(of) }

// String returns the selector in the syntax of label selectors.
func (s Selector) String() string { return s.orNothing().String() }

// Clusters returns the selector as a [cluster.Selector].
func (s Selector) Clusters() *cluster.Selector { return cluster.ForLabels(s.orNothing()) }

func (s Selector) orNothing() labels.Selector {
	if s.labels == nil {
		return labels.Nothing()
	}
	return s.labels
}
