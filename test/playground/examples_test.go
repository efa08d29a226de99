// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/answers/playground"
	"github.com/celset/celset/placement/report"
)

// TestExamples asks each example of the playground, and compares the answer with the expectation of the case.
func TestExamples(t *testing.T) {
	examples, err := examplesOf(t.Context(), "../..")
	require.NoError(t, err)
	require.Equal(t, "Four in a row of a ring", examples[0].Title, "the page begins with the first example")
	page := playground.New(time.Hour)
	groups, titles := map[string]int{}, map[string]bool{}
	for _, one := range examples {
		t.Run(one.Group+"/"+one.Title, func(t *testing.T) {
			require.False(t, titles[one.Title], "titles must differ")
			titles[one.Title] = true
			groups[one.Group]++
			question, err := json.Marshal(answers.TryQuestion{Documents: one.Documents, Machine: one.Machine, Nodes: one.Nodes, InUse: one.InUse})
			require.NoError(t, err)
			text, err := page.Answer(t.Context(), answers.Try, string(question))
			require.NoError(t, err)
			var answer answers.TryAnswer
			require.NoError(t, json.Unmarshal([]byte(text), &answer))
			for _, problem := range answer.Problems {
				require.NotEqual(t, "error", problem.Severity, "line %d: %s\n%s", problem.Line, problem.Message, one.Documents)
			}
			require.NotEmpty(t, answer.Subjects)
			for _, subject := range answer.Subjects {
				require.True(t, subject.Fits, "%s: %s\n%s", subject.Subject, subject.Text, one.Documents)
			}
			requireExpected(t, &one, &answer.Subjects[0])
		})
	}
	for _, group := range []string{"Claims", "Gangs", "Placements", "AWS: p4d, trn1 and trn2", "Hardware"} {
		require.GreaterOrEqual(t, groups[group], 5, group)
	}
	t.Log(groups)
}

// requireExpected compares the answer about the subject of a case with the expected names.
func requireExpected(t *testing.T, one *example, answer *answers.SubjectAnswer) {
	t.Helper()
	var fitting, devices, clusters []string
	for _, node := range answer.Nodes {
		if node.Fits {
			fitting = append(fitting, node.Name)
		}
	}
	if answer.Placement != nil {
		raw, err := json.Marshal(answer.Placement)
		require.NoError(t, err)
		var decided report.Report
		require.NoError(t, json.Unmarshal(raw, &decided))
		for _, c := range decided.Candidates {
			if c.Selected {
				clusters = append(clusters, c.Cluster)
			}
		}
	} else {
		devices = answer.Nodes[0].Devices
	}
	wanted := one.expect.Devices
	for _, names := range one.expect.Requests {
		wanted = append(wanted, names...)
	}
	for want, got := range map[*[]string][]string{&wanted: lastParts(devices), &one.expect.NodesThatFit: fitting, &one.expect.Nodes: fitting, &one.expect.Clusters: clusters} {
		if len(*want) > 0 {
			require.ElementsMatch(t, lastParts(*want), got)
		}
	}
}

// lastParts returns the names of devices without driver and pool.
func lastParts(names []string) []string {
	names = slices.Clone(names)
	for i, name := range names {
		names[i] = name[strings.LastIndex(name, "/")+1:]
	}
	return names
}
