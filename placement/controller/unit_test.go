// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
)

func decision(version string) *clusterv1beta1.PlacementDecision {
	return &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p-decision-1", ResourceVersion: version, Labels: map[string]string{clusterv1beta1.PlacementLabel: "p"},
	}}
}

func TestLedgerKeepsTheNewest(t *testing.T) {
	key, of := client.ObjectKeyFromObject(decision("")), types.NamespacedName{Namespace: "ns", Name: "p"}
	objects := func(version string) []*clusterv1beta1.PlacementDecision {
		return []*clusterv1beta1.PlacementDecision{decision(version)}
	}
	tests := map[string]struct {
		act  func(*ledger)
		want string
	}{
		"an update":           {func(l *ledger) { l.set(decision("11")) }, "11"},
		"an event too late":   {func(l *ledger) { l.set(decision("9")) }, "10"},
		"a deletion":          {func(l *ledger) { l.remove(decision("12")) }, ""},
		"a deletion too late": {func(l *ledger) { l.remove(decision("8")) }, "10"},
		"deleted here":        {func(l *ledger) { l.delete(decision("10")) }, ""},
		"deleted here, and events of before": {func(l *ledger) {
			l.delete(decision("10"))
			l.set(decision("9"))
			l.set(decision("10"))
		}, ""},
		"deleted here, and made again": {func(l *ledger) {
			l.delete(decision("10"))
			l.set(decision("13"))
			l.remove(decision("12"))
		}, "13"},
		"deleted here too late": {func(l *ledger) { l.delete(decision("9")) }, "10"},
		"gone in a list, and events of before": {func(l *ledger) {
			l.list(of, nil, "20")
			l.set(decision("15"))
			l.set(decision("20"))
		}, ""},
		"gone in a list, and made again": {func(l *ledger) {
			l.list(of, nil, "20")
			l.set(decision("21"))
		}, "21"},
		"made after the list":           {func(l *ledger) { l.list(of, nil, "9") }, "10"},
		"in a list, and its event":      {func(l *ledger) { l.list(of, objects("12"), "20"); l.set(decision("12")) }, "12"},
		"in a list, and an older event": {func(l *ledger) { l.list(of, objects("12"), "20"); l.set(decision("11")) }, "12"},
		"in a list that is late":        {func(l *ledger) { l.list(of, objects("9"), "9") }, "10"},
		"gone in a list long ago":       {func(l *ledger) { l.list(of, nil, "20"); l.forget(of); l.set(decision("15")) }, "15"},
		"not comparable":                {func(l *ledger) { l.set(decision("opaque")) }, "opaque"},
		"an answer after a deletion": {func(l *ledger) {
			noted := l.await()
			l.remove(decision("12"))
			l.set(decision("11"))
			noted()
		}, ""},
		"an answer after a deletion of which no event told": {func(l *ledger) {
			noted := l.await()
			l.remove(decision("10"))
			l.set(decision("10"))
			noted()
		}, ""},
		"a list after a deletion": {func(l *ledger) {
			noted := l.await()
			l.remove(decision("12"))
			l.list(of, objects("10"), "11")
			noted()
		}, ""},
		"an answer after a deletion, and another one meanwhile": {func(l *ledger) {
			noted, other := l.await(), l.await()
			l.remove(decision("12"))
			other()
			l.set(decision("11"))
			noted()
		}, ""},
		"made again while an answer is awaited": {func(l *ledger) {
			noted := l.await()
			l.remove(decision("12"))
			l.set(decision("13"))
			noted()
		}, "13"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			l.set(decision("10"))
			test.act(l)
			got := ""
			if object := l.objects[key]; object != nil {
				got = object.ResourceVersion
			}
			require.Equal(t, test.want, got)
			require.Len(t, l.of(of), len(l.objects))
			require.Empty(t, l.awaited)
		})
	}
}

func TestRecords(t *testing.T) {
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "1", ResourceVersion: "5"}}
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	reads := func(names ...string) cluster.ScoreNames { return cluster.ScoreNames{Names: sets.New(names...)} }
	r := newRecords()
	require.False(t, r.reads(key, "room"))
	require.True(t, r.note(p, reads("room")), "changes of it were not looked for")
	require.False(t, r.note(p, reads("room")))
	require.True(t, r.reads(key, "room"))
	require.False(t, r.reads(key, "heat"))
	require.True(t, r.note(p, cluster.ScoreNames{Computed: true}))
	require.True(t, r.reads(key, "heat"), "a computed name may be any")

	warning := placement.Warning{Reason: placement.ReasonScoreExpired, Plugin: "AddOn/room/free", Message: "expired"}
	require.Len(t, r.warn(key, []placement.Warning{warning}), 1)
	require.Empty(t, r.warn(key, []placement.Warning{warning}), "one event is enough")
	require.Empty(t, r.warn(key, nil))
	require.Len(t, r.warn(key, []placement.Warning{warning}), 1)

	require.False(t, r.behind(p))
	written := p.DeepCopy()
	written.ResourceVersion = "7"
	r.wrote(written)
	require.True(t, r.behind(p))
	require.False(t, r.behind(written))

	successor := p.DeepCopy()
	successor.UID = "2"
	require.False(t, r.behind(successor))
	r.note(successor, reads())
	require.EqualValues(t, "2", r.uid(key))
	r.forget(key)
	require.Empty(t, r.uid(key))
}

func TestSetMayHaveCluster(t *testing.T) {
	labelled := func(selector *metav1.LabelSelector) clusterv1beta2.ManagedClusterSelector {
		return clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: selector}
	}
	tests := map[string]struct {
		selector clusterv1beta2.ManagedClusterSelector
		want     bool
	}{
		"exclusive":              {clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}, true},
		"exclusive by default":   {clusterv1beta2.ManagedClusterSelector{}, true},
		"all":                    {labelled(&metav1.LabelSelector{}), true},
		"none":                   {labelled(nil), false},
		"another label":          {labelled(&metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}), false},
		"cannot be understood":   {labelled(&metav1.LabelSelector{MatchLabels: map[string]string{"?": "us"}}), true},
		"a type that is not one": {clusterv1beta2.ManagedClusterSelector{SelectorType: "Odd"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
			set.Spec.ClusterSelector = test.selector
			require.Equal(t, test.want, has(set, map[string]string{clusterv1beta2.ClusterSetLabel: "eu"}))
		})
	}
}

func TestRequeue(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := &reconciler{now: func() time.Time { return now }}
	for after, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, -time.Hour: time.Millisecond, 0: time.Millisecond, 1000 * time.Hour: longestSleep} {
		got, err := r.outcome(&placement.Result{Requeue: now.Add(after)}, nil)
		require.NoError(t, err)
		require.Equal(t, want, got.RequeueAfter)
	}
	got, err := r.outcome(&placement.Result{Timed: true}, nil)
	require.NoError(t, err)
	require.Equal(t, longestSleep, got.RequeueAfter, "the clock may be put back")
	got, err = r.outcome(&placement.Result{}, nil)
	require.NoError(t, err)
	require.Zero(t, got)
}

func TestClip(t *testing.T) {
	require.Equal(t, "short", clip("short"))
	long := clip(strings.Repeat("ü", 1000) + "x")
	require.LessOrEqual(t, len(long), 1024)
	require.True(t, utf8.ValidString(long))
	require.True(t, strings.HasSuffix(clip("x"+strings.Repeat("ü", 1000)), "ü......"))
}

// reading has one Placement, or fails.
type reading struct {
	client.Reader
	live *clusterv1beta1.Placement
	err  error
}

func (r reading) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.err == nil {
		r.live.DeepCopyInto(into.(*clusterv1beta1.Placement))
	}
	return r.err
}

// A cache may know of a cluster that came after a Placement was changed, and not of that.
func TestNothingIsWrittenForAPlacementThatHasChanged(t *testing.T) {
	decided := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p", UID: "1", Generation: 1, Annotations: map[string]string{placement.TakeAnnotation: "true"},
	}}
	for name, test := range map[string]struct {
		change   func(*clusterv1beta1.Placement)
		err      error
		conflict bool
	}{
		"the same":    {change: func(p *clusterv1beta1.Placement) { p.Status.NumberOfSelectedClusters = 1 }},
		"other spec":  {change: func(p *clusterv1beta1.Placement) { p.Generation = 2 }, conflict: true},
		"another one": {change: func(p *clusterv1beta1.Placement) { p.UID = "2" }, conflict: true},
		"handed over": {change: func(p *clusterv1beta1.Placement) { p.Annotations = nil }, conflict: true},
		"deleted":     {err: apierrors.NewNotFound(clusterv1beta1.Resource("placements"), "p"), conflict: true},
		"no answer":   {err: errors.New("gone")},
	} {
		t.Run(name, func(t *testing.T) {
			live := decided.DeepCopy()
			if test.change != nil {
				test.change(live)
			}
			err := (&reconciler{reader: reading{live: live, err: test.err}}).checkCurrent(t.Context(), decided)
			require.Equal(t, test.conflict, apierrors.IsConflict(err))
			require.Equal(t, test.conflict || test.err != nil, err != nil)
		})
	}
}
