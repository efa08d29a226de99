// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/internal/crossing"
	"github.com/celset/celset/test/internal/env"
)

// TestSuccessorOfAVictimIsNotEvicted deletes the victim while the proxy delays the eviction request, and creates another pod of
// the same name. The delayed request must not evict the new pod.
func TestSuccessorOfAVictimIsNotEvicted(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]func(crossing.Write) bool{"deletion": crossing.IsDeletion, "condition": crossing.IsDisruption} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "successor", 1, wholeDevices)
			s.occupy("victim", s.Nodes[0], 0, "p10")
			eviction := s.crossing.Stop(0, stops)
			s.run("job", s.form.all(s.driver), of("p50"))
			env.Receive(t, "the eviction", eviction.Reached())
			s.end("victim")
			s.pod("victim", []string{"victim"}, of("p10"))
			successor := s.Pod(t, "victim").UID
			eviction.Release()
			s.awaitLog("Async Preemption finished completely", "job")
			s.RequireRunning(t, "job")
			s.requireKept("victim")
			pod := s.Pod(t, "victim")
			require.Equal(t, successor, pod.UID)
			require.Nil(t, pod.DeletionTimestamp)
			for _, condition := range pod.Status.Conditions {
				require.NotEqual(t, "DisruptionTarget", string(condition.Type))
			}
			s.requireNothingHeld()
			s.requireNoneInVain()
		})
	}
}
