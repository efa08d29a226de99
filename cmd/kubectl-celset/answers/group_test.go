// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
)

// gang returns a group of two pods with a claim for all GPUs of a node, and a constraint on the nodes.
func gang(expression string) string {
	text := fmt.Sprintf(`
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: g}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  schedulingConstraints: {topology: [{key: celset.dev/together}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec:
  spec:
    devices:
      requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 8}}]
      config:
      - opaque:
          driver: celset.dev
          parameters: {apiVersion: celset.dev/v1alpha1, kind: CELNodeSetConstraint, name: together, expression: %q}
`, expression)
	for i := range 2 {
		text += fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: worker-%d}
spec:
  schedulerName: celset-scheduler
  schedulingGroup: {podGroupName: g}
  resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]
  containers: [{name: c, resources: {claims: [{name: gpus}]}}]
`, i)
	}
	return text
}

func TestTryGroup(t *testing.T) {
	try := func(expression string, inUse int) answers.TryAnswer {
		return ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: gang(expression), Machine: "hgx-h100", Nodes: 3, InUse: inUse})
	}
	const apart = "nodes.map(n, n.labels['kubernetes.io/hostname']).distinct().size() == 2"
	fits := try(apart, 0).Subjects
	require.Len(t, fits, 3, "the group and its pods")
	group := fits[0]
	require.Equal(t, "podgroup default/g", group.Subject)
	require.True(t, group.Fits, group.Text)
	require.Equal(t, "2 of 2 waiting pods, on 2 nodes.", group.Summary)
	require.Len(t, group.Nodes, 2)
	require.Equal(t, "nodes for PodGroup default/g", group.Picture.Caption)
	require.Equal(t, 3, strings.Count(group.Picture.SVG, "<title>node-"), "all nodes are drawn")

	never := try("nodes.map(n, n.labels['kubernetes.io/hostname']).distinct().size() == 4", 0).Subjects[0]
	require.False(t, never.Fits)
	require.Equal(t, answers.DoesNotFit, never.Verdict)
	require.Equal(t, "no set of nodes satisfies the constraint of PodGroup default/g", never.Picture.Caption)

	busy := try(apart, 1).Subjects[0]
	require.False(t, busy.Fits)
	require.Len(t, busy.Nodes, 3)
	require.NotEmpty(t, busy.Nodes[0].Reason)
}
