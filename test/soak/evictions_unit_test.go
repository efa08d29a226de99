// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// TestDecisionsAreReadFromLogs has the logger write what plugin/preemption.go and plugin/profiles.go do.
func TestDecisionsAreReadFromLogs(t *testing.T) {
	var log bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "soak", Name: name}}
	}
	logger.Info("Devices are held for a pod for which others are evicted", "pod", klog.KObj(pod("high")), "node", klog.KRef("", "node-1"),
		"devices", "mesh-1, mesh-2", "victims", klog.KObjSlice([]*corev1.Pod{pod("a"), pod("b")}), "cost", "any", "exact", true)
	logger.Info("A pod does not wait for the devices that are held for it", "pod", klog.KObj(pod("high")), "node", klog.KRef("", "node-1"), "why", "pod soak/low-1 has some of them")
	logger.Info("Something else", "pod", klog.KObj(pod("high")))
	logger.Info("Devices are no longer held for a pod", "pod", klog.KObj(pod("high")), "node", klog.KRef("", "node-1"), "end", "bound", "victims", 2)
	var d decisions
	for line := range bytes.Lines(log.Bytes()) {
		d.enter(time.Now().Year(), string(line))
	}
	require.Len(t, d.choices, 1)
	require.WithinDuration(t, time.Now(), d.choices[0].at, time.Minute)
	d.choices[0].at = time.Time{}
	require.Equal(t, choice{preemptor: "high", node: "node-1", victims: []string{"a", "b"}}, d.choices[0])
	require.Len(t, d.ends, 2)
	require.Equal(t, []string{"high", "not waited for: pod has some of them"}, []string{d.ends[0].pod, d.ends[0].how})
	require.Equal(t, []string{"high", "bound"}, []string{d.ends[1].pod, d.ends[1].how})
}

func TestExplain(t *testing.T) {
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	victim := &life{name: "low", node: "node-1", bound: at(0), evicted: at(10)}
	chosen := []choice{
		{at: at(4), preemptor: "earlier", node: "node-1", victims: []string{"low"}},
		{at: at(10), preemptor: "high", node: "node-1", victims: []string{"other", "low"}},
		{at: at(50), preemptor: "later", node: "node-1", victims: []string{"low"}},
	}
	tests := []struct {
		name      string
		preemptor *life
		choices   []choice
		kills     []time.Time
		ends      []ended
		want      string
	}{
		{name: "bound", preemptor: &life{node: "node-1", bound: at(12)}, choices: chosen, want: "its preemptor was bound there"},
		{name: "deleted", preemptor: &life{deleted: at(12)}, choices: chosen, want: "its preemptor was deleted before it was bound"},
		{name: "waits", preemptor: &life{}, choices: chosen, want: "unexplained: its preemptor high was not bound"},
		{name: "bound elsewhere", preemptor: &life{node: "node-2", bound: at(12)}, choices: chosen, want: "unexplained: its preemptor high was bound elsewhere"},
		{name: "bound elsewhere, killed before", preemptor: &life{node: "node-2", bound: at(12)}, choices: chosen, kills: []time.Time{at(9), at(20)},
			want: "unexplained: its preemptor high was bound elsewhere"},
		{name: "bound elsewhere after a kill", preemptor: &life{node: "node-2", bound: at(12)}, choices: chosen, kills: []time.Time{at(11)},
			want: "the scheduler was killed, and its preemptor bound elsewhere"},
		{name: "bound elsewhere, since somebody else took the devices", preemptor: &life{node: "node-2", bound: at(12)}, choices: chosen, ends: []ended{{at(11), "high", "broken"}},
			want: "its preemptor was bound elsewhere, what was held for it ended: broken"},
		{name: "others are evicted elsewhere, too", preemptor: &life{node: "node-2", bound: at(20)}, choices: append(slices.Clone(chosen), choice{at: at(15), preemptor: "high", node: "node-2"}),
			ends: []ended{{at(15), "high", "renominated"}}, want: "unexplained: others were evicted for high on node-2, too"},
		{name: "others are evicted elsewhere, since somebody else took the devices", preemptor: &life{node: "node-2", bound: at(20)},
			choices: append(slices.Clone(chosen), choice{at: at(15), preemptor: "high", node: "node-2"}),
			ends:    []ended{{at(12), "high", "broken"}}, want: "its preemptor was bound elsewhere, what was held for it ended: broken"},
		{name: "others are evicted elsewhere, which the log explains", preemptor: &life{node: "node-2", bound: at(20)},
			choices: append(slices.Clone(chosen), choice{at: at(15), preemptor: "high", node: "node-2"}),
			ends:    []ended{{at(15), "high", "not waited for: pod has some of them"}}, want: "its preemptor was bound elsewhere, what was held for it ended: not waited for: pod has some of them"},
		{name: "others are evicted elsewhere, after it was to be bound on a third node", preemptor: &life{node: "node-2", bound: at(20)},
			choices: append(slices.Clone(chosen), choice{at: at(15), preemptor: "high", node: "node-2"}),
			ends:    []ended{{at(13), "high", "renominated"}}, want: "its preemptor was bound elsewhere, what was held for it ended: renominated"},
		{name: "the hold of somebody else was broken", preemptor: &life{node: "node-2", bound: at(12)}, choices: chosen, ends: []ended{{at(11), "low", "broken"}},
			want: "unexplained: its preemptor high was bound elsewhere"},
		{name: "nobody says", preemptor: &life{node: "node-1", bound: at(12)}, choices: chosen[2:], want: "unexplained: no scheduler says for whom"},
		{name: "nobody could say", preemptor: &life{node: "node-1", bound: at(12)}, kills: []time.Time{at(10)}, want: "the scheduler was killed before it said for whom"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.preemptor.name = "high"
			lives := map[string]*life{"low": victim, "high": test.preemptor}
			require.Equal(t, test.want, explain(victim, lives, decisions{choices: test.choices, ends: test.ends}, test.kills))
		})
	}
}

// TestRanksLeaveANode: otherwise nobody could say that each pod of the upper ranks could run.
func TestRanksLeaveANode(t *testing.T) {
	for _, nodes := range []int{10, 200} {
		pods, percent := 0, 0
		for _, rank := range ranks {
			percent += rank.often
			if rank.couldRun() {
				pods += rank.pods(nodes)
			}
			for _, name := range rank.kinds {
				require.NotNil(t, kindNamed(name), name)
			}
		}
		require.Less(t, pods, nodes)
		require.Equal(t, 100, percent)
	}
}
