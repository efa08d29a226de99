// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package federation_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement/federation"
)

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

// satisfied is what a requirement means; valid is false if it means nothing.
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

// A selector means that all its requirements are satisfied, and one that makes
// no sense spoils all.
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

// Every text is a selector or an error.
func TestAnyAnnotation(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\[{"]?[keyoprator:"\[\]{},! ]{0,30}[\]}"]?`)).Draw(t, "text")
		selector, err := federation.Parse(text)
		if err != nil {
			require.False(t, selector.Matches(labels.Set{}))
		}
	})
}
