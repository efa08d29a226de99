// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete]
  resources: [{group: cluster.open-cluster-management.io, resources: [placementdecisions, placementdecisions/status, placements/status]}]
- level: None
`

// TestOnlyTheLeaderWrites runs two instances of the program and kills the leader. Before and after, only the leader may write.
func TestOnlyTheLeaderWrites(t *testing.T) {
	cases.OnlyNightly(t, "a leader that gets no processor in time loses its lease")
	binary, dir := build(t), t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	require.NoError(t, os.WriteFile(policy, []byte(auditPolicy), 0o600))
	const first, second = "first", "second"
	h := newHub(t, controlplane.Options{
		APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log, "--audit-log-mode=blocking"},
		Users:         []controlplane.User{{Name: first, Groups: []string{"system:masters"}}, {Name: second, Groups: []string{"system:masters"}}},
	})
	const clusters = 230
	h.join(t, 0, clusters)
	h.score(t, clusters)
	require.NoError(t, h.relabel(t.Context(), nameOf(0), core, "yes"))
	random, expected := rand.New(rand.NewPCG(5, 6)), map[string]sets.Set[string]{}
	placements := make([]*clusterv1beta1.Placement, 20)
	for i := range placements {
		placements[i] = h.place(t, fmt.Sprintf("p%d", i), anySpec(random))
		expected[placements[i].Name] = sets.New(nameOf(0))
	}
	o := h.observe(t)
	run := func(user string) *instance {
		kubeconfig, err := h.KubeconfigFor(user)
		require.NoError(t, err)
		return start(t, binary, kubeconfig, "--leader-elect-resource-namespace="+namespace,
			// On a busy machine a renewal may take seconds, so shorter durations would fail.
			"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=12s", "--leader-elect-retry-period=500ms")
	}
	leader := run(first)
	h.requireSettled(t)
	o.catchUp(t)
	o.expect(expected)
	standby, held := run(second), h.holder(t)

	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan error, 1)
	go func() { changed <- h.keepChanging(ctx, random, placements, clusters) }()
	time.Sleep(3 * time.Second)
	leader.running(t)
	require.Equal(t, held, h.holder(t), "a leader that lives is not replaced")
	o.requireEvent(t, 3) // the leader is writing now
	leader.kill()
	require.Eventually(t, func() bool { return h.holder(t) != held }, env.Patience, 50*time.Millisecond)
	o.requireEvent(t, 10) // the other instance continues the work
	cancel()
	require.NoError(t, <-changed)
	h.requireSettled(t)
	standby.running(t)
	standby.kill()
	o.requireStayed(t, o.catchUp(t))

	var users []string
	for _, event := range readAudit(t, log) {
		if event.User.Username == first || event.User.Username == second {
			users = append(users, event.User.Username)
			require.False(t, event.ObjectRef.Resource == "placementdecisions" && event.ResponseStatus.Code == http.StatusConflict, "%v", event)
		}
	}
	t.Logf("%d writes", len(users))
	require.Equal(t, []string{first, second}, slices.Compact(users), "one after the other")
}

// holder returns the identity of the lease's holder.
func (h *hub) holder(t testing.TB) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: program}, lease))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// readAudit returns the events in the API server's audit log, in the order of the requests.
func readAudit(t testing.TB, path string) []auditv1.Event {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	var result []auditv1.Event
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		require.NoError(t, json.Unmarshal(lines.Bytes(), &event))
		result = append(result, event)
	}
	require.NoError(t, lines.Err())
	slices.SortFunc(result, func(a, b auditv1.Event) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	return result
}

// requireEvent waits until the observer has seen n more events.
func (o *observer) requireEvent(t *testing.T, n int) {
	t.Helper()
	since := o.count()
	require.Eventually(t, func() bool { return o.count() > since+n }, env.Patience, time.Millisecond, "the program does not write, although there is always something to write")
}
