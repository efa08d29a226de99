// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement"
)

func TestTaintsAndTolerations(t *testing.T) {
	const (
		no     = clusterv1.TaintEffectNoSelect
		ifNew  = clusterv1.TaintEffectNoSelectIfNew
		prefer = clusterv1.TaintEffectPreferNoSelect
	)
	// The taint is gpu=a100, an hour old.
	for name, test := range map[string]struct {
		effect      clusterv1.TaintEffect
		tolerations string
		former      bool
		want        bool
	}{
		"NoSelect":                                 {no, ``, false, false},
		"NoSelect, selected before":                {no, ``, true, false},
		"NoSelectIfNew":                            {ifNew, ``, false, false},
		"NoSelectIfNew, selected before":           {ifNew, ``, true, true},
		"NoSelectIfNew, tolerated":                 {ifNew, `{key: gpu, operator: Exists}`, false, true},
		"PreferNoSelect":                           {prefer, ``, false, true},
		"unknown effect is like NoSelect":          {"Odd", ``, false, false},
		"equal value":                              {no, `{key: gpu, operator: Equal, value: a100}`, false, true},
		"no operator is Equal":                     {no, `{key: gpu, value: a100}`, false, true},
		"other value":                              {no, `{key: gpu, operator: Equal, value: h100}`, false, false},
		"Exists":                                   {no, `{key: gpu, operator: Exists}`, false, true},
		"other key":                                {no, `{key: cpu, operator: Exists}`, false, false},
		"every key":                                {no, `{operator: Exists}`, false, true},
		"same effect":                              {no, `{key: gpu, operator: Exists, effect: NoSelect}`, false, true},
		"other effect":                             {no, `{key: gpu, operator: Exists, effect: NoSelectIfNew}`, false, false},
		"unknown operator matches nothing":         {no, `{key: gpu, operator: Near, value: a100}`, false, false},
		"one of several":                           {no, `{key: cpu, operator: Exists}, {key: gpu, operator: Exists}`, false, true},
		"for longer than the taint is there":       {no, `{key: gpu, operator: Exists, tolerationSeconds: 3601}`, false, true},
		"until now":                                {no, `{key: gpu, operator: Exists, tolerationSeconds: 3600}`, false, false},
		"for less than no time":                    {no, `{key: gpu, operator: Exists, tolerationSeconds: -9223372036854775808}`, false, false},
		"for longer than a duration can say":       {no, `{key: gpu, operator: Exists, tolerationSeconds: 9223372036854775807}`, false, true},
		"also NoSelectIfNew for some time":         {ifNew, `{key: gpu, operator: Exists, tolerationSeconds: 3600}`, false, false},
		"the longest of several tolerations holds": {no, `{operator: Exists, tolerationSeconds: 1}, {operator: Exists, tolerationSeconds: 3601}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(tainting(managed("a"), "gpu", test.effect))
			h.clusters[0].Spec.Taints[0].Value = "a100"
			if test.former {
				h.decided("ns", "p", "a")
			}
			result := schedule(t, placed(t, `tolerations: [`+test.tolerations+`]`), h)
			if test.want {
				require.Equal(t, []string{"a"}, selected(t, result))
			} else {
				require.Empty(t, selected(t, result))
				require.Equal(t, "has the taint gpu=a100:"+string(test.effect)+" that is not tolerated", removedBy(result, placement.TaintToleration)["a"])
			}
		})
	}
}

func TestEveryTaintMustBeTolerated(t *testing.T) {
	h := newHub(tainting(tainting(managed("a"), "x", "NoSelect"), "y", "NoSelect"), managed("b"))
	result := schedule(t, placed(t, `tolerations: [{key: x, operator: Exists}]`), h)
	require.Equal(t, []string{"b"}, selected(t, result))
	require.Equal(t, map[string]string{"a": "has the taint y:NoSelect that is not tolerated"}, removedBy(result, placement.TaintToleration))
}

func TestPreferNoSelectLowersTheRank(t *testing.T) {
	h := newHub(tainting(managed("a"), "x", "PreferNoSelect"), managed("b"), tainting(managed("c"), "y", "PreferNoSelect"))
	require.Equal(t, []string{"b", "a", "c"}, ranked(schedule(t, placed(t, ``), h)))
	require.Equal(t, []string{"b"}, selected(t, schedule(t, placed(t, `numberOfClusters: 1`), h)))
	t.Run("where the score is equal", func(t *testing.T) {
		h.decided("ns", "p", "c")
		require.Equal(t, []string{"c", "b", "a"}, ranked(schedule(t, placed(t, ``), h)))
		h.decided("ns", "p")
	})
	t.Run("unless it is tolerated", func(t *testing.T) {
		require.Equal(t, []string{"a", "b", "c"}, ranked(schedule(t, placed(t, `tolerations: [{key: x, operator: Exists}]`), h)))
	})
}

func TestRequeueWhenATolerationEnds(t *testing.T) {
	h := newHub(tainting(managed("a"), "x", "NoSelect"), tainting(managed("b"), "w", "NoSelect"), tainting(managed("c"), "z", "NoSelect"))
	object := placed(t, `tolerations:
- {key: x, operator: Exists, tolerationSeconds: 3700}
- {key: x, operator: Exists, tolerationSeconds: 7200}
- {key: w, operator: Exists, tolerationSeconds: 5400}
- {key: z, operator: Exists, tolerationSeconds: 60}
`)
	s := newScheduler(t)
	result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, selected(t, result))
	require.Equal(t, now.Add(30*time.Minute), result.Requeue, "w is tolerated for 90 minutes, of which 60 are over")

	result, err = s.Schedule(t.Context(), object, h.snapshot(), result.Requeue)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, selected(t, result))
	require.Equal(t, now.Add(time.Hour), result.Requeue)

	result, err = s.Schedule(t.Context(), object, h.snapshot(), result.Requeue)
	require.NoError(t, err)
	require.Empty(t, selected(t, result))
	require.True(t, result.Requeue.IsZero())
}

func TestBadTolerations(t *testing.T) {
	for tolerations, message := range map[string]string{
		`{operator: Equal}`:                      `TaintToleration:spec.tolerations[0].operator: If the key is empty, operator must be Exists.`,
		`{value: x}`:                             `TaintToleration:spec.tolerations[0].operator: If the key is empty, operator must be Exists.`,
		`{key: a}, {operator: Exists, value: x}`: `TaintToleration:spec.tolerations[1].value: If the operator is Exists, the value should be empty.`,
	} {
		h := newHub(several("a")...)
		h.decided("ns", "p", "a")
		requireMisconfigured(t, schedule(t, placed(t, `tolerations: [`+tolerations+`]`), h), message)
	}
}

func TestTaintWithoutTime(t *testing.T) {
	h := newHub(tainting(managed("a"), "x", "NoSelect"))
	h.clusters[0].Spec.Taints[0].TimeAdded = metav1.Time{}
	require.Empty(t, selected(t, schedule(t, placed(t, `tolerations: [{operator: Exists, tolerationSeconds: 10}]`), h)))
	require.Len(t, selected(t, schedule(t, placed(t, `tolerations: [{operator: Exists}]`), h)), 1)
}
