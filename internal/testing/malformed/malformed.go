// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package malformed draws Placements and the objects they depend on with anything
// wrong in them: what no API server lets through, and what it does. In most objects a
// few fields are wrong, so that what reads them gets as far as it can; in some all are.
//
//	object := malformed.Placement(rand.New(rand.NewPCG(seed, 0)))
//
// Names are few, so that objects name each other.
package malformed

import (
	"math"
	"math/rand/v2"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names are the names that most objects and references have.
var Names = []string{"a", "b", "c"}

// source draws the fields of one object.
type source struct {
	*rand.Rand
	// oneIn is in how many fields one is wrong.
	oneIn int
}

func from(random *rand.Rand) source {
	return source{random, []int{1, 10, 30, 100, 100, 100}[random.IntN(6)]}
}

func (s source) wrong() bool { return s.IntN(s.oneIn) == 0 }

func pick[E any](s source, from ...E) E { return from[s.IntN(len(from))] }

// text is one of these texts, or one that fits nowhere.
func (s source) text(fitting ...string) string {
	if s.wrong() {
		fitting = []string{"", "a", "x y", "é\xff", strings.Repeat("n", 300), "100%", "-1", "A/b/c", "\x00"}
	}
	return pick(s, fitting...)
}

func (s source) name() string { return s.text(Names...) }

// number is one of these, or any at the edge of something.
func (s source) number(fitting ...int32) int32 {
	if s.wrong() {
		fitting = []int32{0, -1, 11, -11, 101, -101, math.MaxInt32, math.MinInt32}
	}
	return pick(s, fitting...)
}

func list[E any](s source, draw func() E) []E {
	var result []E
	for range s.IntN(3) {
		result = append(result, draw())
	}
	return result
}

func maybe[E any](s source, draw func() E) *E {
	if s.IntN(2) == 0 {
		return nil
	}
	value := draw()
	return &value
}

func (s source) requirement() metav1.LabelSelectorRequirement {
	result := metav1.LabelSelectorRequirement{Key: s.name(), Operator: metav1.LabelSelectorOperator(s.text("In", "NotIn"))}
	if s.wrong() {
		result.Operator = metav1.LabelSelectorOperator(s.text("Exists", "Gt"))
	}
	result.Values = append(list(s, s.name), "a")
	if s.wrong() {
		result.Values = nil
	}
	return result
}

func (s source) labelSelector() metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: s.labels(), MatchExpressions: list(s, s.requirement)}
}

func (s source) labels(also ...string) map[string]string {
	result := map[string]string{}
	for range s.IntN(2) {
		result[s.text(append(also, Names...)...)] = s.name()
	}
	return result
}

func (s source) expression() string {
	if s.wrong() {
		return s.text("1", "managedCluster.", "nothing", "'", strings.Repeat("(", 1000), `managedCluster.scores(1)`, `"a".scores("a").size() > 0`)
	}
	return s.text(
		"true", "false", "managedCluster.x", "[1][2] == 1", `managedCluster.scores("a").exists(s, s.quantity > 1)`,
		`managedCluster.metadata.labels["a"].parseJSON()`, `quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity("1"))`,
		`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.2.3"))`, `managedCluster.scores(managedCluster.metadata.name) == []`,
		`managedCluster.status.clusterClaims.exists(c, c.value.matches("(a|b)+"))`,
	)
}
