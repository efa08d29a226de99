// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

// expressions is a predicate with CEL expressions.
func expressions(quoted string) string {
	return "{requiredClusterSelector: {celSelector: {celExpressions: [" + quoted + "]}}}"
}

const (
	before = "was misconfigured before: "
	first  = "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]"
	second = "spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[0]"
)

func TestUpdatesOfSpecs(t *testing.T) {
	negative := before + "spec.numberOfClusters: the number -1 is negative; leave it out to select all"
	tests := map[string]struct {
		old, spec string
		// refused are the fields of the errors.
		refused  []string
		warnings []string
	}{
		"right stays right": {old: "numberOfClusters: 1", spec: "numberOfClusters: 2"},
		"right gets wrong":  {old: "numberOfClusters: 1", spec: "numberOfClusters: -1", refused: []string{"spec.numberOfClusters"}},
		"wrong gets right":  {old: "numberOfClusters: -1", spec: "numberOfClusters: 1"},
		"wrong stays wrong": {old: "numberOfClusters: -1", spec: "numberOfClusters: -1", warnings: []string{negative}},
		"wrong in another way": {
			old: "numberOfClusters: -1", spec: "numberOfClusters: -2", refused: []string{"spec.numberOfClusters"},
		},
		"something else changes": {
			old: "numberOfClusters: -1", spec: "{numberOfClusters: -1, clusterSets: [global]}", warnings: []string{negative},
		},
		"something else gets wrong": {
			old: "numberOfClusters: -1", spec: "{numberOfClusters: -1, sortBy: Age}",
			refused: []string{"spec.sortBy"}, warnings: []string{negative},
		},
		"a wrong expression moves forward": {
			old:      "predicates: [" + expressions(`"true"`) + "," + expressions(`"1"`) + "]",
			spec:     "predicates: [" + expressions(`"1"`) + "]",
			warnings: []string{before + first + ": line 1, column 1: the expression must return bool, it returns int"},
		},
		"a wrong expression moves back": {
			old:      "predicates: [" + expressions(`"1"`) + "]",
			spec:     "predicates: [" + expressions(`"true"`) + "," + expressions(`"1"`) + "]",
			warnings: []string{before + second + ": line 1, column 1: the expression must return bool, it returns int"},
		},
		"a wrong expression is edited": {
			old:     "predicates: [" + expressions(`"1"`) + "]",
			spec:    "predicates: [" + expressions(`"2"`) + "]",
			refused: []string{first},
		},
		"a wrong expression is repeated": {
			old:      "predicates: [" + expressions(`"1"`) + "]",
			spec:     "predicates: [" + expressions(`"1"`) + "," + expressions(`"1"`) + "]",
			refused:  []string{second},
			warnings: []string{before + first + ": line 1, column 1: the expression must return bool, it returns int"},
		},
		"a selector with a wrong part is edited elsewhere": {
			old:     `predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: Gt}]}}}]`,
			spec:    `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Gt}]}}}]`,
			refused: []string{"spec.predicates[0].requiredClusterSelector.labelSelector"},
		},
		"another selector of the same predicate is edited": {
			old:      `predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: Gt}]}}}]`,
			spec:     `predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: Gt}]}, celSelector: {celExpressions: ["true"]}}}]`,
			warnings: []string{before + `spec.predicates[0].requiredClusterSelector.labelSelector: "Gt" is not a valid label selector operator`},
		},
		"several lines become one": {
			old:      "predicates: [" + expressions(`"true &&\n x y\tz"`) + "]",
			spec:     "{predicates: [" + expressions(`"true &&\n x y\tz"`) + "], numberOfClusters: 1}",
			warnings: []string{before + first + ": line 2, column 4: Syntax error: mismatched input 'y' expecting <EOF>"},
		},
	}
	checker := newChecker(t, false)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := judged(checker.CheckUpdate(t.Context(), placed(t, test.old), placed(t, test.spec)))
			var refused []string
			for _, err := range got.Errors {
				refused = append(refused, err.Field)
			}
			require.Equal(t, test.refused, refused)
			require.Equal(t, test.warnings, got.Warnings)
		})
	}
}

func TestUpdatesOfMetadata(t *testing.T) {
	now := metav1.Now()
	wrong := "{numberOfClusters: -1, predicates: [" + expressions(`"a b"`) + "]}"
	tests := map[string]struct {
		prepare, mutate func(*clusterv1beta1.Placement)
		refused         string
		warnings        int
	}{
		"labels":      {mutate: func(p *clusterv1beta1.Placement) { p.Labels = map[string]string{"a": "b"} }, warnings: 2},
		"annotations": {mutate: func(p *clusterv1beta1.Placement) { p.Annotations["a"] = "b" }, warnings: 2},
		"finalizers":  {mutate: func(p *clusterv1beta1.Placement) { p.Finalizers = []string{"a/b"} }, warnings: 2},
		"finalizers of what is being deleted": {
			prepare: func(p *clusterv1beta1.Placement) { p.Finalizers, p.DeletionTimestamp = []string{"a/b"}, &now },
			mutate:  func(p *clusterv1beta1.Placement) { p.Finalizers = nil },
		},
		"status": {mutate: func(p *clusterv1beta1.Placement) { p.Status.NumberOfSelectedClusters = 1 }, warnings: 2},
		"it becomes ours": {
			prepare:  func(p *clusterv1beta1.Placement) { p.Annotations = nil },
			mutate:   func(p *clusterv1beta1.Placement) { p.Annotations = ours() },
			warnings: 2,
		},
		"it becomes another's": {mutate: func(p *clusterv1beta1.Placement) { p.Annotations = nil }},
		"the order of ties gets wrong": {
			mutate:  func(p *clusterv1beta1.Placement) { p.Annotations[placement.TieBreakAnnotation] = "dice" },
			refused: "metadata.annotations[celset.dev/tie-break]", warnings: 2,
		},
		"the order of ties stays wrong": {
			prepare:  func(p *clusterv1beta1.Placement) { p.Annotations[placement.TieBreakAnnotation] = "dice" },
			mutate:   func(p *clusterv1beta1.Placement) { p.Labels = map[string]string{"a": "b"} },
			warnings: 3,
		},
	}
	checker := newChecker(t, false)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := placed(t, wrong)
			if test.prepare != nil {
				test.prepare(old)
			}
			object := old.DeepCopy()
			test.mutate(object)
			got := judged(checker.CheckUpdate(t.Context(), old, object))
			if test.refused == "" {
				require.Empty(t, got.Errors)
			} else {
				require.Len(t, got.Errors, 1)
				require.Equal(t, test.refused, got.Errors[0].Field)
			}
			require.Len(t, got.Warnings, test.warnings)
		})
	}
}
