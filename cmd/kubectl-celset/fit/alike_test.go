// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
)

// TestManyNodes checks that the text grows with the number of different answers, but not with the number of nodes.
func TestManyNodes(t *testing.T) {
	report := &fit.Report{Subject: "Pod ns/p"}
	for i := range 6000 {
		n := &explain.Explanation{Node: fmt.Sprintf("node-%04d", i), Reason: "request r: too few matching devices are free (0 of 1 requested)"}
		switch {
		case i%3 == 0:
			n.Fits, n.Reason, n.Evaluations = true, "", int64(i+1)
			n.Claims = []explain.Claim{{Name: "ns/c", Devices: []explain.Device{{Request: "r", Driver: "d", Pool: n.Node, Device: "gpu-0"}}}}
		case i == 1 || i == 4:
			n.Reason = "Too many pods"
		}
		report.Nodes = append(report.Nodes, n)
	}
	var b strings.Builder
	require.NoError(t, report.Print(&b))
	require.Equal(t, `Pod ns/p
  node node-0000: yes (0 steps, 1 evaluation)
    claim ns/c: r: gpu-0
  1999 more nodes: yes: node-0003, node-0006, node-0009 and 1996 more
  node node-0001: no: Too many pods
  node node-0004: no: Too many pods
  node node-0002: no: request r: too few matching devices are free (0 of 1 requested)
  3997 more nodes: no: request r: too few matching devices are free (0 of 1 requested): node-0005, node-0007, node-0008 and 3994 more
`, b.String())

	// With many different answers, the text lists only the first ones.
	for i := range report.Nodes {
		report.Nodes[i] = &explain.Explanation{Node: report.Nodes[i].Node, Reason: fmt.Sprintf("request r: %d of 9999 devices", i)}
	}
	b.Reset()
	require.NoError(t, report.Print(&b))
	require.Equal(t, 52, strings.Count(b.String(), "\n"))
	require.Contains(t, b.String(), "  5950 more nodes with 5950 other answers: -o yaml has all\n")
}
