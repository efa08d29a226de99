// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package federation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement/federation"
)

// The files in testdata have annotations and the expected selectors. "go test ./placement/federation -rewrite" updates the
// selectors.

var european = labels.Set{"location": "europe", "environment": "prod", "version": "15"}

func TestSelectors(t *testing.T) {
	datadriven.RunTest(t, "testdata/selectors", func(t *testing.T, d *datadriven.TestData) string {
		var lines []string
		for line := range strings.SplitSeq(d.Input, "\n") {
			name, annotation, _ := strings.Cut(line, ": ")
			selector, err := federation.ParseAnnotations(map[string]string{federation.ClusterSelectorAnnotation: annotation})
			if err != nil {
				require.False(t, selector.Matches(european))
				lines = append(lines, name+": "+err.Error())
				continue
			}
			lines = append(lines, fmt.Sprintf("%s: %t by %q", name, selector.Matches(european), selector))
		}
		return strings.Join(lines, "\n")
	})
}

func TestDistribute(t *testing.T) {
	clusters := []federation.Cluster{
		{Name: "paris", Labels: map[string]string{"location": "europe"}},
		{Name: "boston", Labels: map[string]string{"location": "usa"}, Present: true},
		{Name: "athens", Labels: map[string]string{"location": "europe"}, Present: true},
		{Name: "miami", Labels: map[string]string{"location": "usa"}},
		{Name: "lab", Present: true},
	}
	datadriven.RunTest(t, "testdata/distributions", func(t *testing.T, d *datadriven.TestData) string {
		annotations := map[string]string{}
		if d.Input != "" {
			annotations[federation.ClusterSelectorAnnotation] = d.Input
		}
		before := slices.Clone(clusters)
		got, err := federation.Distribute(annotations, clusters)
		require.Empty(t, cmp.Diff(before, clusters), "the list is not reordered")
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("selected %s, deleted %s", got.Selected, got.Deleted)
	})
	none, err := federation.Distribute(map[string]string{federation.ClusterSelectorAnnotation: "[]"}, nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestZeroSelector(t *testing.T) {
	var selector federation.Selector
	require.False(t, selector.Matches(european))
	require.Empty(t, selector.String())
	verdict, err := selector.Clusters().Match(t.Context(), cluster.New(&clusterv1.ManagedCluster{}), cluster.Hub{})
	require.NoError(t, err)
	require.False(t, verdict.Matches)
}

var (
	requirements = rapid.Custom(func(t *rapid.T) federation.Requirement {
		return federation.Requirement{
			Key:      rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]string{"!", "DoesNotExist", "=", "==", "in", "In", "!=", "notin", "NotIn", "exists", "Exists", "gt", "Gt", ">", "lt", "Lt", "<"}).Draw(t, "operator"),
			Values:   rapid.SliceOfN(labelValues, 0, 2).Draw(t, "values"),
		}
	})
	labelValues = rapid.SampledFrom([]string{"", "1", "2", "10", "x"})
	labelSets   = rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "d"}), labelValues)
)

// satisfied implements the operators independently. It reports whether labels satisfy a requirement, and whether the
// requirement is valid.
func satisfied(r federation.Requirement, set labels.Set) (satisfied, valid bool) {
	value, present := set[r.Key]
	switch r.Operator {
	case "!", "DoesNotExist":
		return !present, len(r.Values) == 0
	case "exists", "Exists":
		return present, len(r.Values) == 0
	case "in", "In":
		return present && slices.Contains(r.Values, value), len(r.Values) > 0
	case "notin", "NotIn":
		return !present || !slices.Contains(r.Values, value), len(r.Values) > 0
	}
	if len(r.Values) != 1 {
		return false, false
	}
	switch wanted := r.Values[0]; r.Operator {
	case "=", "==":
		return present && value == wanted, true
	case "!=":
		return !present || value != wanted, true
	default:
		limit, err := strconv.Atoi(wanted)
		number, notNumber := strconv.Atoi(value)
		greater := r.Operator == "gt" || r.Operator == "Gt" || r.Operator == ">"
		return notNumber == nil && (greater && number > limit || !greater && number < limit), err == nil
	}
}

// TestSelectorsMeanWhatTheySay checks that a selector matches if all its requirements are satisfied, and that one invalid
// requirement makes the whole annotation invalid.
func TestSelectorsMeanWhatTheySay(t *testing.T) {
	seen := map[string]int{}
	cases.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(requirements, 0, 3).Draw(t, "requirements")
		set := labels.Set(labelSets.Draw(t, "labels"))
		want, valid := true, true
		for _, requirement := range list {
			one, makesSense := satisfied(requirement, set)
			want, valid = want && one, valid && makesSense
		}
		text, err := json.Marshal(list)
		require.NoError(t, err)
		selector, err := federation.Parse(string(text))
		require.Equal(t, valid, err == nil, "%s: %v", text, err)
		require.Equal(t, want && valid, selector.Matches(set), "%s on %s", text, set)
		if seen["all"]++; !valid {
			seen["invalid"]++
		} else if want {
			seen["satisfied"]++
		}

		verdict, err := selector.Clusters().Match(t.Context(), cluster.New(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Labels: set}}), cluster.Hub{})
		require.NoError(t, err)
		require.Equal(t, want && valid, verdict.Matches)
	})
	require.Greater(t, seen["all"], seen["invalid"]+seen["satisfied"], "some are not satisfied")
	require.NotZero(t, seen["satisfied"])
	require.NotZero(t, seen["invalid"])
}

// TestAnyAnnotation checks that Parse returns a selector or an error for any text.
func TestAnyAnnotation(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\[{"]?[keyoprator:"\[\]{},! ]{0,30}[\]}"]?`)).Draw(t, "text")
		selector, err := federation.Parse(text)
		if err != nil {
			require.False(t, selector.Matches(labels.Set{}))
		}
	})
}

// TestDistributeTreatsClustersAlone checks that the result for a cluster depends only on its own labels, not on other clusters
// or their order.
func TestDistributeTreatsClustersAlone(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		var clusters []federation.Cluster
		for i := range rapid.IntRange(0, 5).Draw(t, "n") {
			clusters = append(clusters, federation.Cluster{
				Name: string(rune('a' + i)), Labels: labelSets.Draw(t, "labels"), Present: rapid.Bool().Draw(t, "present")})
		}
		annotations := map[string]string{federation.ClusterSelectorAnnotation: `[{"key": "a", "operator": "in", "values": ["1", "x"]}]`}
		selector, err := federation.ParseAnnotations(annotations)
		require.NoError(t, err)
		got, err := federation.Distribute(annotations, rapid.Permutation(clusters).Draw(t, "order"))
		require.NoError(t, err)
		var want federation.Distribution
		for _, cluster := range clusters {
			switch selected := selector.Matches(labels.Set(cluster.Labels)); {
			case selected:
				want.Selected = append(want.Selected, cluster.Name)
			case cluster.Present:
				want.Deleted = append(want.Deleted, cluster.Name)
			}
		}
		require.Empty(t, cmp.Diff(want, got))
	})
}
