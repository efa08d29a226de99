// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/cmd/kubectl-celset/gang"
	"github.com/celset/celset/test/internal/env"
)

// celset runs kubectl-celset with the arguments, requires the exit code, and returns the output.
func (l *nodes) celset(t *testing.T, code int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = slices.Insert(args, len(args)-1, "--kubeconfig="+cluster(t).Kubeconfig(), "--namespace="+l.Namespace)
	require.Equal(t, code, cli.Run(t.Context(), args, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}), "%s%s", &stdout, &stderr)
	return stdout.String()
}

// TestCommandLineKnowsWhatTheSchedulerDoes compares kubectl's output with the scheduler. kubectl must predict the nodes of a
// group whose pods have a scheduling gate. It must explain a waiting pod like the pod's condition.
func TestCommandLineKnowsWhatTheSchedulerDoes(t *testing.T) {
	l := newRails(t, "kubectl", 3)
	ring := l.Ring(t, 8)
	driver := ring.Drivers()[0]
	l.OccupyAs(t, env.CelsetProfile, l.Nodes[0], ring, "mla-0", "mla-1", "mla-2", "mla-3")
	l.OccupyAs(t, env.CelsetProfile, l.Nodes[2], ring, "mla-5")
	members := l.group(t, "two", sameRails(driver), "", 2, 2, l.wants(t, driver, 4), func(pod *corev1.Pod) {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	})
	var predicted gang.Report
	require.NoError(t, json.Unmarshal([]byte(l.celset(t, cli.ExitNegative, "explain", "-o", "json", "podgroup/two")), &predicted))
	require.Len(t, predicted.Refused, 1, "the gate")
	require.Len(t, predicted.Chosen, 2)
	for _, name := range members {
		_, err := l.Client().CoreV1().Pods(l.Namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec": {"schedulingGates": null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	for at, i := range l.on(t, members...) {
		require.Equal(t, l.Nodes[i], predicted.Chosen[at].Node)
		var devices []string
		for _, d := range predicted.Chosen[at].Devices {
			devices = append(devices, d.Device)
		}
		require.Equal(t, l.DevicesOf(t, members[at]), devices)
	}
	require.Contains(t, l.celset(t, cli.ExitOK, "explain", "podgroup/two"), "which satisfy the constraint: "+l.Nodes[0])
	require.Contains(t, l.celset(t, cli.ExitOK, "draw", "podgroup/two"), "* chosen (2)")
	require.Equal(t, "podgroup/two\n:4\n", l.celset(t, cli.ExitOK, "__complete", "explain", "podgroup/t"))

	none := "no set of 3 nodes, of which 2 already run pods of the group, satisfies constraint"
	l.requireRefused(t, l.member(t, "two", 2, l.wants(t, driver, 4)), none)
	require.Contains(t, l.celset(t, cli.ExitNegative, "explain", "podgroup/two"), none)
}
