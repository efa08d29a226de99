// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/costbound"
	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/shape"
)

// TestLimitsRefuseNothingThatPeopleWrite checks that no expression in the project that a person wrote exceeds a limit. The
// expressions are in the corpus, in the measured shapes, on pages and in manifests. The page about the threat model states
// their number.
func TestLimitsRefuseNothingThatPeopleWrite(t *testing.T) {
	j := newJudge(t)
	j.corpus(t)
	j.shapes(t)
	j.pages(t)
	j.manifests(t)
	text := "| from | constraints | device selectors | expressions over clusters | refused |\n|---|---|---|---|---|\n"
	for _, from := range j.order {
		c := j.counts[from]
		text += fmt.Sprintf("| %s | %d | %d | %d | %d |\n", from, c.constraints, c.selectors, c.clusters, len(c.refused))
		require.Empty(t, c.refused, from)
		require.Positive(t, c.constraints+c.selectors+c.clusters, from)
	}
	checkGenerated(t, filepath.Join("docs", "threat-model.md"), map[string]string{
		"accepted": text,
	})
}

// TestJudgeRefuses checks that judge finds expressions that exceed a limit. Otherwise the test above would prove nothing.
func TestJudgeRefuses(t *testing.T) {
	j := newJudge(t)
	j.constraint("a", "'a'.matches('(abcdefghijklmnopqrstuvwxyz){1000}')")
	j.constraint("a", strings.Repeat("[", 60)+strings.Repeat("]", 60)+" == []")
	j.selector("a", "lists.range(900000).distinct().size() > 1")
	j.cluster("a", strings.Repeat("[", 60)+strings.Repeat("]", 60)+" == []")
	require.Len(t, j.counts["a"].refused, 4)
	j.document("b", `{a: [{kind: CELDeviceConstraint, expression: "'a'.matches('(abcdefghijklmnopqrstuvwxyz){1000}')"}], b: {cel: {expression: "quantity('1e2000000000').isInteger()"}}, c: {celExpressions: ["1"]}}`)
	require.Len(t, j.counts["b"].refused, 3)
	require.Equal(t, count{constraints: 1, selectors: 1, clusters: 1, refused: j.counts["b"].refused}, *j.counts["b"])
}

// A judge compiles expressions with the limits of the programs, and counts them by source.
type judge struct {
	devices   *device.Environment
	clusters  *cluster.Environment
	selectors *costbound.Selectors
	order     []string
	counts    map[string]*count
}

type count struct {
	constraints, selectors, clusters int
	refused                          []string
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	devices, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	clusters, err := cluster.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	selectors, err := costbound.NewSelectors(cel.Config{})
	require.NoError(t, err)
	return &judge{devices: devices, clusters: clusters, selectors: selectors, counts: map[string]*count{}}
}

func (j *judge) of(from string) *count {
	if j.counts[from] == nil {
		j.order, j.counts[from] = append(j.order, from), &count{}
	}
	return j.counts[from]
}

func (c *count) note(text string, err error) {
	if err != nil {
		c.refused = append(c.refused, text+": "+err.Error())
	}
}

func (j *judge) constraint(from, text string, variables ...v1alpha1.Variable) *device.Expression {
	c := j.of(from)
	c.constraints++
	expression, err := j.devices.Compile(context.Background(), text, variables...)
	c.note(text, err)
	return expression
}

func (j *judge) selector(from, text string) {
	c := j.of(from)
	c.selectors++
	_, err := j.selectors.Judge(context.Background(), text, false)
	c.note(text, err)
}

func (j *judge) cluster(from, text string) {
	c := j.of(from)
	c.clusters++
	_, err := j.clusters.Compile(context.Background(), clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{text}},
	}, nil)
	c.note(text, err)
}

// satisfied also evaluates the expression on a set of devices, because evaluations have limits for time and memory. The
// evaluation must not fail.
func (j *judge) satisfied(from, text string, set []*device.Device) {
	if expression := j.constraint(from, text); expression != nil {
		_, err := expression.Satisfied(context.Background(), set, cel.NewBudget(cel.DefaultCostLimit))
		j.of(from).note(text, err)
	}
}

func (j *judge) corpus(t *testing.T) {
	t.Helper()
	for _, e := range corpus.Expressions() {
		var set []*device.Device
		missing := map[string]int{}
		for _, r := range e.Requests {
			missing[r.Driver] += r.Count
		}
		for _, d := range e.Hardware.Devices() {
			if missing[d.Driver] > 0 {
				missing[d.Driver]--
				set = append(set, device.New(d.Driver, &d.Device))
			}
		}
		for driver, n := range missing {
			require.Zero(t, n, "%s: too few devices of %s", e.Name, driver)
		}
		j.satisfied("the corpus of `internal/testing/corpus`", e.Text, set)
	}
}

func (j *judge) shapes(t *testing.T) {
	t.Helper()
	known := map[string]bool{}
	for _, s := range shape.Scenarios() {
		if !known[s.Expression] {
			known[s.Expression] = true
			j.constraint("the shapes of the benchmarks, `internal/testing/shape`", s.Expression)
		}
	}
}

func (j *judge) pages(t *testing.T) {
	t.Helper()
	for _, b := range blocks(t, "cel") {
		for text := range strings.SplitSeq(b.text, "\n\n") {
			if isAboutClusters(text) {
				j.cluster(pageKind(b), text)
			} else {
				j.constraint(pageKind(b), text)
			}
		}
	}
	for _, b := range blocks(t, "yaml") {
		for document := range strings.SplitSeq(b.text, "\n---\n") {
			j.document(pageKind(b), document)
		}
	}
}

func pageKind(b block) string {
	if strings.HasPrefix(b.page, "docs/hardware/") {
		return "the hardware pages"
	}
	return "the other pages"
}

// manifests checks all manifests. It skips the chart's templates, which are not YAML.
func (j *judge) manifests(t *testing.T) {
	t.Helper()
	for _, b := range files(t) {
		if inChart(b) {
			continue
		}
		for document := range strings.SplitSeq(b.text, "\n---\n") {
			j.document("the examples and other manifests", document)
		}
	}
}

// document checks the expressions in an object or a part of an object.
func (j *judge) document(from, text string) {
	var content any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		j.of(from).note(text, err)
		return
	}
	j.walk(from, content)
}

func (j *judge) walk(from string, value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			j.walk(from, element)
		}
	case map[string]any:
		if value["kind"] == "CELDeviceConstraint" {
			j.definition(from, value)
		}
		if selector, ok := value["cel"].(map[string]any); ok {
			if text, ok := selector["expression"].(string); ok {
				j.selector(from, text)
			}
		}
		if all, ok := value["celExpressions"].([]any); ok {
			for _, text := range all {
				j.cluster(from, fmt.Sprint(text))
			}
		}
		for _, entry := range value {
			j.walk(from, entry)
		}
	}
}

func (j *judge) definition(from string, content map[string]any) {
	var definition v1alpha1.CELDeviceConstraint
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &definition)
	if err != nil {
		j.of(from).note(fmt.Sprint(content), err)
		return
	}
	j.constraint(from, definition.Expression, definition.Variables...)
}

// TestExponentsAreCut checks the statements of docs/limits.md about large exponents of quantities.
func TestExponentsAreCut(t *testing.T) {
	j := newJudge(t)
	for _, text := range []string{
		"quantity('1e16000000').compareTo(quantity('1e16000001')) == 0",
		"quantity('11e600').isGreaterThan(quantity('1e700'))",
		"quantity('1e128').isLessThan(quantity('1e129'))",
	} {
		expression, err := j.devices.Compile(t.Context(), text)
		require.NoError(t, err)
		satisfied, err := expression.Satisfied(t.Context(), nil, cel.NewBudget(cel.DefaultCostLimit))
		require.NoError(t, err)
		require.True(t, satisfied, text)
	}
}
