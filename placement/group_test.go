// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/placement"
)

// groupsOf draws the groups of a decision: "name:cluster,cluster ...".
func groupsOf(t *testing.T, result *placement.Result) []string {
	t.Helper()
	require.NotNil(t, result.Decision, result.Describe())
	var all []string
	for _, group := range result.Decision.Groups {
		text := group.Name + ":"
		for _, slice := range group.Slices {
			for _, d := range slice.Decisions {
				text += d.ClusterName
			}
		}
		all = append(all, text)
	}
	return all
}

func grouped(strategy string) string {
	return "decisionStrategy: {groupStrategy: {" + strategy + "}}"
}

func TestGroups(t *testing.T) {
	const (
		canary = `{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {ring: one}}}}`
		claim  = `{groupName: second, groupClusterSelector: {claimSelector: {matchExpressions: [{key: ring, operator: In, values: [two]}]}}}`
		all    = `{groupName: all, groupClusterSelector: {}}`
	)
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"none":                     {``, []string{":abcde"}},
		"of two":                   {grouped(`clustersPerDecisionGroup: 2`), []string{":ab", ":cd", ":e"}},
		"percentage is rounded up": {grouped(`clustersPerDecisionGroup: 25%`), []string{":ab", ":cd", ":e"}},
		"all":                      {grouped(`clustersPerDecisionGroup: 100%`), []string{":abcde"}},
		"more than all":            {grouped(`clustersPerDecisionGroup: 6`), []string{":abcde"}},
		"much more than all":       {grouped(`clustersPerDecisionGroup: 9000000000000000000%`), []string{":abcde"}},
		"zero is all":              {grouped(`clustersPerDecisionGroup: 0`), []string{":abcde"}},
		"less than none is all":    {grouped(`clustersPerDecisionGroup: -3`), []string{":abcde"}},
		"named":                    {grouped(`decisionGroups: [` + canary + `]`), []string{"canary:bd", ":ace"}},
		"named ones are cut, too":  {grouped(`clustersPerDecisionGroup: 1, decisionGroups: [` + canary + `]`), []string{"canary:b", "canary:d", ":a", ":c", ":e"}},
		"by claim":                 {grouped(`decisionGroups: [` + claim + `]`), []string{"second:ae", ":bcd"}},
		"a cluster is in the first group it is in": {grouped(`decisionGroups: [` + claim + `, ` + all + `, ` + canary + `]`), []string{"second:ae", "all:bcd"}},
		"nothing selected is one empty group":      {"numberOfClusters: 0\n" + grouped(`clustersPerDecisionGroup: 2, decisionGroups: [`+canary+`]`), []string{":"}},
		"only selected clusters are divided":       {"numberOfClusters: 2\n" + grouped(`decisionGroups: [`+canary+`]`), []string{"canary:b", ":a"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(claiming(managed("a"), "ring=two"), managed("b", "ring=one"), managed("c"), managed("d", "ring=one"), claiming(managed("e"), "ring=two"))
			require.Equal(t, test.want, groupsOf(t, schedule(t, placed(t, test.spec), h)))
		})
	}
}

func TestBadGroups(t *testing.T) {
	const path = "DecisionGroup:spec.decisionStrategy.groupStrategy."
	for strategy, message := range map[string]string{
		`clustersPerDecisionGroup: many`:                          path + `clustersPerDecisionGroup: invalid value for IntOrString: invalid type: string is not a percentage; use a number or a percentage`,
		`clustersPerDecisionGroup: x%`:                            path + `clustersPerDecisionGroup: invalid value for IntOrString: `,
		`clustersPerDecisionGroup: 99999999999999999999%`:         path + `clustersPerDecisionGroup: invalid value for IntOrString: `,
		`decisionGroups: [{groupClusterSelector: {}}]`:            path + `decisionGroups[0].groupName: a decision group must have a name`,
		`decisionGroups: [{groupName: ok}, {groupName: "no no"}]`: path + `decisionGroups[1].groupName: "no no": a valid label must`,
		`decisionGroups: [{groupName: g, groupClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: Lt}]}}}]`: path + `decisionGroups[0].groupClusterSelector.labelSelector: "Lt" is not a valid label selector operator`,
	} {
		requireMisconfigured(t, schedule(t, placed(t, grouped(strategy)), newHub(several("a")...)), message)
	}
}

func TestSlices(t *testing.T) {
	h := newHub()
	for i := range 250 {
		c := managed(fmt.Sprintf("c%03d", i))
		if i < 101 {
			c.Labels["ring"] = "one"
		}
		h.clusters = append(h.clusters, c)
	}
	result := schedule(t, placed(t, grouped(`clustersPerDecisionGroup: 120, decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {ring: one}}}}]`)), h)
	var got []string
	for i, group := range result.Decision.Groups {
		for _, slice := range group.Slices {
			got = append(got, fmt.Sprintf("%d %q %s %d", i, group.Name, slice.Name, len(slice.Decisions)))
		}
	}
	require.Equal(t, []string{
		`0 "canary" p-decision-1 100`, `0 "canary" p-decision-2 1`,
		`1 "" p-decision-3 100`, `1 "" p-decision-4 20`,
		`2 "" p-decision-5 29`,
	}, got)
	require.Equal(t, 250, result.Decision.Clusters)
}
