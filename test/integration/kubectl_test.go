// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/test/internal/env"
)

// celset runs kubectl-celset on the cluster, requires the exit code, and returns the output.
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

// TestCommandLineKnowsWhatTheSchedulerDoes checks that the commands predict the scheduler's decision on a claim, and that they
// change nothing.
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
	require.Contains(t, l.celset(t, cli.ExitOK, nil, "check", "claim/ring"), l.Nodes[0]+": 70 from the 8 matching devices, 15 from the 6 that are free")
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
	require.Contains(t, explained, `no: spec.schedulerName: no celset-scheduler has a profile "other-scheduler", so constraints are not supported: use celset-`)
	require.Contains(t, explained, "node "+l.Nodes[1]+": yes")

	l.CreatePod(t, "ring", env.CelsetProfile, "ring")
	l.RequireRunning(t, "ring")
	require.Equal(t, l.Nodes[1], l.Pod(t, "ring").Spec.NodeName)
	require.Equal(t, predicted, l.DevicesOf(t, "ring"))
	require.Contains(t, l.celset(t, cli.ExitOK, nil, "draw", "claim/ring"), "["+predicted[0]+" *]")
	require.Contains(t, l.celset(t, cli.ExitOK, nil, "draw", "node/"+l.Nodes[1], "-o", "svg"), l.Namespace+"/ring")
	require.Contains(t, l.celset(t, cli.ExitOK, nil, "simulate", "pod/ring"), "is allocated: mla: "+predicted[0])
	require.NotContains(t, l.celset(t, cli.ExitOK, nil, "explain", "pod/ring"), "not checked")
}

// TestConvertedClaimsAreStored checks that the API server rejects a claim in the form of the KEP, but stores the converted
// claim.
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
}

// TestPrometheusMayReadTheScheduler reads metrics as Prometheus would with the PodMonitor in manifests/monitoring: with the
// token of its service account, over TLS without verification.
func TestPrometheusMayReadTheScheduler(t *testing.T) {
	t.Parallel()
	require.Equal(t, http.StatusForbidden, status(t, "/metrics", ""), "nobody in particular may not")
	cluster.ApplyManifests(t, "monitoring/scheduler/reader.yaml")
	token := ""
	env.Eventually(t, "the secret has a token", func(ctx context.Context) (string, error) {
		secret, err := client().CoreV1().Secrets("kube-system").Get(ctx, "celset-scheduler-metrics", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if token = string(secret.Data["token"]); token == "" {
			return "it is empty", nil
		}
		return "", nil
	})
	env.Eventually(t, "the token may read", func(context.Context) (string, error) {
		if got := status(t, "/metrics", token); got != http.StatusOK {
			return http.StatusText(got), nil
		}
		return "", nil
	})
	require.Equal(t, http.StatusForbidden, status(t, "/configz", token), "it may read nothing else")
	require.Equal(t, http.StatusUnauthorized, status(t, "/metrics", "wrong"))
}

// status requests a path from the scheduler and returns the status code. An empty token means no authentication.
func status(t *testing.T, path, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cluster.scheduler.Endpoint()+path, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // the PodMonitor has the same setting
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// TestCommandLineAsksClusters asks several clusters whether the claim in a file fits. If one cluster does not answer, the
// command must still print the answers of the others.
func TestCommandLineAsksClusters(t *testing.T) {
	t.Parallel()
	l := newLab(t, "kubectl-clusters", 2)
	ring := l.Ring(t, 8)
	driver := ring.Drivers()[0]
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	require.NoError(t, err)
	east := *config.Contexts[config.CurrentContext]
	config.Clusters["gone"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	west := east
	west.Cluster = "gone"
	config.Contexts = map[string]*clientcmdapi.Context{"east": &east, "west": &west}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	ask := func(code int, count int64, args ...string) string {
		t.Helper()
		claim := &resourceapi.ResourceClaim{TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"}}
		claim.Name, claim.Namespace = "new", l.Namespace
		claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "mla", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count}}}
		text, err := json.Marshal(claim)
		require.NoError(t, err)
		var stdout, stderr bytes.Buffer
		streams := genericiooptions.IOStreams{In: bytes.NewReader(text), Out: &stdout, ErrOut: &stderr}
		args = append(args, "-f", "-", "claim/new", "--kubeconfig="+kubeconfig, "--namespace="+l.Namespace, "--node="+l.Nodes[0], "--node="+l.Nodes[1])
		require.Equal(t, code, cli.Run(t.Context(), args, streams), "%s%s", &stdout, &stderr)
		return stdout.String() + stderr.String()
	}
	text := ask(cli.ExitOK, 4, "simulate", "--contexts=west,east")
	require.Regexp(t, `^cluster west\n  error: .*127.0.0.1:1.*\ncluster east: ResourceClaim .*/new\n  node .*: yes.*\n    claim .*\n  1 more node: yes\n$`, text)
	require.Contains(t, ask(cli.ExitNegative, 9, "simulate", "--contexts=east"), "2 nodes: no: request mla: too few matching devices are free (8 of 9 requested)")
	require.Contains(t, ask(cli.ExitFailure, 9, "simulate", "--contexts=east,west"), "the claims fit in none of the clusters that answered, and cluster west did not answer")
	require.Contains(t, ask(cli.ExitNegative, 9, "explain", "--contexts=east,east"), "9 requested, 8 match")
	decoder := utilyaml.NewYAMLToJSONDecoder(strings.NewReader(ask(cli.ExitOK, 4, "simulate", "--contexts=east,west", "-o", "yaml")))
	for _, name := range []string{"east", "west"} {
		var report map[string]any
		require.NoError(t, decoder.Decode(&report))
		require.Equal(t, name, report["cluster"])
	}
}
