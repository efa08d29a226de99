// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/testing/env"
)

// celset runs kubectl-celset on the cluster and returns what it printed.
func (l *lab) celset(t *testing.T, code int, stdin io.Reader, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append(args, "--kubeconfig="+cluster.Kubeconfig(), "--namespace="+l.Namespace)
	streams := genericiooptions.IOStreams{In: stdin, Out: &stdout, ErrOut: &stderr}
	require.Equal(t, code, cli.Run(t.Context(), args, streams), "%s%s", &stdout, &stderr)
	return stdout.String()
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "objects.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// What the command line says of a claim is what the scheduler then does, and saying it
// changes nothing.
func TestCommandLineKnowsWhatTheSchedulerDoes(t *testing.T) {
	t.Parallel()
	l := newLab(t, "kubectl", 2)
	ring := l.Ring(t, 8)
	l.Occupy(t, l.Nodes[0], ring, "mla-2", "mla-5")
	l.Occupy(t, l.Nodes[1], ring, "mla-2")
	driver := ring.Drivers()[0]
	claim := l.CreateClaim(t, "ring", env.Request("mla", driver, 4), env.Constrained("ring4", env.Contiguous(driver, 4)))

	var result fit.Report
	raw := l.celset(t, cli.ExitOK, nil, "simulate", "claim/ring", "-o", "json", "--node", l.Nodes[0], "--node", l.Nodes[1])
	require.NoError(t, json.Unmarshal([]byte(raw), &result))
	require.Len(t, result.Nodes, 2)
	require.False(t, result.Nodes[0].Fits)
	require.True(t, result.Nodes[1].Fits)
	var predicted []string
	for _, device := range result.Nodes[1].Claims[0].Devices {
		predicted = append(predicted, device.Device)
	}
	require.Contains(t, l.celset(t, cli.ExitOK, nil, "check", "claim/ring"), l.Nodes[0]+": 70 of 8 devices, 15 of 6 free ones")
	explained := l.celset(t, cli.ExitNegative, nil, "explain", "claim/ring", "--node", l.Nodes[0])
	require.Contains(t, explained, "no set satisfies constraint ring4")
	require.Contains(t, explained, "in the way: claim "+l.Namespace+"/")
	require.Equal(t, claim.ResourceVersion, l.Claim(t, "ring").ResourceVersion)

	var names bytes.Buffer
	require.Equal(t, cli.ExitOK, cli.Run(t.Context(), []string{"__complete", "explain", "--kubeconfig=" + cluster.Kubeconfig(), "--namespace=" + l.Namespace, "claim/ri"},
		genericiooptions.IOStreams{Out: &names, ErrOut: io.Discard}))
	require.Equal(t, "claim/ring\n:4\n", names.String())

	l.CreatePod(t, "elsewhere", "other-scheduler", "ring")
	explained = l.celset(t, cli.ExitNegative, nil, "explain", "pod/elsewhere")
	require.Contains(t, explained, `no: spec.schedulerName: no celset-scheduler has a profile "other-scheduler", so the claims stay unallocated: use celset-`)
	require.Contains(t, explained, "node "+l.Nodes[1]+": yes")

	l.CreatePod(t, "ring", env.CelsetProfile, "ring")
	l.RequireRunning(t, "ring")
	require.Equal(t, l.Nodes[1], l.Pod(t, "ring").Spec.NodeName)
	require.Equal(t, predicted, l.DevicesOf(t, "ring"))
	require.Contains(t, l.celset(t, cli.ExitOK, nil, "draw", "claim/ring"), "["+predicted[0]+" *]")
	require.Contains(t, l.celset(t, cli.ExitOK, nil, "draw", "node/"+l.Nodes[1], "-o", "svg"), l.Namespace+"/ring")
	require.Contains(t, l.celset(t, cli.ExitOK, nil, "simulate", "pod/ring"), "has been allocated: mla: "+predicted[0])
	require.NotContains(t, l.celset(t, cli.ExitOK, nil, "explain", "pod/ring"), "not checked")
}

// A claim in the form of the KEP is refused as it is, and stored when it was converted.
func TestConvertedClaimsAreStored(t *testing.T) {
	t.Parallel()
	l := newLab(t, "convert", 0)
	kep := `{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "kep"}, "spec": {"devices": {
		"requests": [{"name": "mla", "exactly": {"deviceClassName": "x.example.com", "count": 2}}],
		"constraints": [{"requests": ["mla"], "cel": {"expression": "size(devices) == 2"}}]}}}`
	converted := l.celset(t, cli.ExitOK, bytes.NewBufferString(kep), "convert", "-f", "-")
	_, err := cluster.Kubectl(t, l.Namespace, "apply", "--server-side", "--validate=strict", "-f", writeFile(t, kep))
	require.ErrorContains(t, err, "cel")
	_, err = cluster.Kubectl(t, l.Namespace, "apply", "--server-side", "--validate=strict", "-f", writeFile(t, converted))
	require.NoError(t, err)
	require.EqualValues(t, "celset.dev/constraint1", *l.Claim(t, "kep").Spec.Devices.Constraints[0].MatchAttribute)
	stored := writeFile(t, converted)
	require.Contains(t, l.celset(t, cli.ExitOK, nil, "convert", "--to", "kep", "-f", stored, "-o", "json"), `"expression": "size(devices) == 2"`)
}
