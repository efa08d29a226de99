// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/test/internal/env"
)

// served is a running command "kubectl celset serve".
type served struct {
	url, token string
	stderr     *bytes.Buffer
	client     *http.Client
	// stop ends the command, as Ctrl+C does, and returns its exit code.
	stop func() int
}

// start starts the command, and reads the URL that it prints.
func start(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	s := &served{stderr: &bytes.Buffer{}}
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, append([]string{"serve"}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: write, ErrOut: s.stderr})
		_ = write.Close()
	}()
	s.stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { s.stop() })
	lines := bufio.NewReader(read)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "%s", s.stderr)
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "http://") {
			base, token, found := strings.Cut(line, "#token=")
			require.True(t, found)
			s.url, s.token = base, token
		}
		if line == "Press Ctrl+C to stop." {
			break
		}
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Timeout: 2 * time.Minute, Transport: transport}
	return s
}

func (s *served) request(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	return s.client.Do(request)
}

// ask asks a question. The answer is decoded into answer.
func (s *served) ask(ctx context.Context, name string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	response, err := s.request(ctx, http.MethodPost, "answers/"+name, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return json.NewDecoder(response.Body).Decode(answer)
}

func (s *served) overview(t *testing.T) *answers.OverviewAnswer {
	t.Helper()
	overview := &answers.OverviewAnswer{}
	require.NoError(t, s.ask(t.Context(), answers.Overview, struct{}{}, overview))
	return overview
}

// TestPageFollowsTheCluster asks questions while objects change.
func TestPageFollowsTheCluster(t *testing.T) {
	hub := cluster(t)
	in := namespace(t, hub, "serve")
	node := env.Create(t, hub.Client().CoreV1().Nodes(), nodeOf("serve-1")).Name
	env.Create(t, hub.Client().ResourceV1().ResourceSlices(), sliceOf(node, 4))
	env.Create(t, hub.Client().ResourceV1().DeviceClasses(), classOf(driver))
	s := start(t, "--kubeconfig="+hub.Kubeconfig())

	before := s.overview(t)
	require.Equal(t, "context celset-local", before.Origin)
	require.True(t, before.Live)
	require.Empty(t, before.Warnings)
	at := slices.IndexFunc(before.Nodes, func(n answers.NodeSummary) bool { return n.Name == node })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, answers.NodeSummary{Name: node, Drivers: []string{driver}, Devices: 4}, before.Nodes[at])

	response, err := s.request(t.Context(), http.MethodGet, "events", nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	events := bufio.NewReader(response.Body)
	next := func() string {
		t.Helper()
		line, err := events.ReadString('\n')
		require.NoError(t, err)
		_, err = events.ReadString('\n')
		require.NoError(t, err)
		return line
	}
	require.Contains(t, next(), before.Revision)

	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: claimSpec(3)}
	env.Create(t, hub.Client().ResourceV1().ResourceClaims(in), claim)
	require.NotContains(t, next(), before.Revision)
	waits := answers.Waiting{Subject: "claim/train", Namespace: in}
	env.Until(t, "the claim waits", func(context.Context) (bool, error) {
		return slices.ContainsFunc(s.overview(t).Waiting, func(w answers.Waiting) bool { return w.Subject == waits.Subject && w.Namespace == in }), nil
	})
	explained := &answers.SubjectAnswer{}
	require.NoError(t, s.ask(t.Context(), answers.Explain, answers.ExplainQuestion{Subject: "claim/train", Namespace: in}, explained))
	require.True(t, explained.Fits, explained.Text)
	require.NotNil(t, explained.Picture)

	require.Equal(t, cli.ExitOK, s.stop())
	require.Empty(t, s.stderr.String())
	if _, err := io.ReadAll(events); err != nil {
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}

// TestPageOfAHub asks about Placements.
func TestPageOfAHub(t *testing.T) {
	hub := cluster(t)
	in := namespace(t, hub, "hub")
	require.NoError(t, hub.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Labels: map[string]string{clusterSet: "default"}}}))
	require.NoError(t, hub.Create(t.Context(), &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "web"}}))
	s := start(t, "--kubeconfig="+hub.Kubeconfig())
	overview := s.overview(t)
	require.Empty(t, overview.Warnings)
	require.True(t, slices.ContainsFunc(overview.Placements, func(p answers.PlacementSummary) bool { return p.Name == "web" && p.Namespace == in }))
	decided := map[string]any{}
	require.NoError(t, s.ask(t.Context(), answers.Placement, answers.PlacementQuestion{Namespace: in, Name: "web"}, &decided))
	require.Contains(t, decided, "placement", "%v", decided)
	require.NoError(t, hub.Delete(t.Context(), &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "web"}}))
	env.Until(t, "the Placement is gone", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(s.overview(t).Placements, func(p answers.PlacementSummary) bool { return p.Name == "web" }), nil
	})
}

const clusterSet = "cluster.open-cluster-management.io/clusterset"

// TestPageOfAStranger checks that the page of a user without rights starts, and says what the user may not read.
func TestPageOfAStranger(t *testing.T) {
	hub := cluster(t)
	kubeconfig, err := hub.KubeconfigFor(stranger)
	require.NoError(t, err)
	s := start(t, "--kubeconfig="+kubeconfig)
	overview := s.overview(t)
	require.Empty(t, overview.Nodes)
	text := strings.Join(overview.Warnings, "\n")
	for _, kind := range []string{"ResourceClaims", "ResourceSlices", "Nodes", "Pods"} {
		require.Contains(t, text, "list "+kind+": ")
	}
	require.Equal(t, cli.ExitOK, s.stop())
	require.Contains(t, s.stderr.String(), "warning: list Nodes: nodes is forbidden")
}
