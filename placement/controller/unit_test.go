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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
)

func decision(version string) *clusterv1beta1.PlacementDecision {
	return &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p-decision-1", ResourceVersion: version, Labels: map[string]string{clusterv1beta1.PlacementLabel: "p"},
	}}
}

// TestLedgerKeepsTheNewest runs scripts on a ledger that has version 10 of a PlacementDecision. The commands are events ("set"
// and "remove" with a version), a deletion by this process ("delete"), and a list: its first word is the version of the object
// in the list, "-" for none, and the second word is the version of the list. A request begins with "await" and ends with
// "noted".
func TestLedgerKeepsTheNewest(t *testing.T) {
	key, of := client.ObjectKeyFromObject(decision("")), types.NamespacedName{Namespace: "ns", Name: "p"}
	for script, want := range map[string]string{
		"set 11": "11", "set 9": "10", "set opaque": "opaque", // a later version, an older version, and a version that can't be compared
		"remove 12": "", "remove 8": "10",
		"delete 10": "", "delete 10, set 9, set 10": "", "delete 10, set 13, remove 12": "13", "delete 9": "10",
		// The object was deleted before the list. Then events arrive: old ones, and one of an object created after the list.
		"list - 20, set 15, set 20": "", "list - 20, set 21": "21", "list - 9": "10",
		"list 12 20, set 12": "12", "list 12 20, set 11": "12", "list 9 9": "10",
		"list - 20, forget, set 15":                     "15", // after forget, old events count again
		"await, remove 12, set 11, noted":               "",   // the response of a request is stored after a deletion
		"await, remove 10, set 10, noted":               "",   // the response has the version that was deleted
		"await, remove 12, list 10 11, noted":           "",
		"await, await, remove 12, noted, set 11, noted": "",
		"await, remove 12, set 13, noted":               "13",
	} {
		l := newLedger()
		l.set(decision("10"))
		var awaited []func()
		for act := range strings.SplitSeq(script, ", ") {
			words := append(strings.Fields(act), "", "")
			switch object := decision(words[1]); words[0] {
			case "set":
				l.set(object)
			case "remove":
				l.remove(object)
			case "delete":
				l.delete(object)
			case "forget":
				l.forget(of)
			case "await":
				awaited = append(awaited, l.expectAnswer())
			case "noted":
				awaited[len(awaited)-1]()
				awaited = awaited[:len(awaited)-1]
			case "list":
				objects := []*clusterv1beta1.PlacementDecision{object}
				if words[1] == "-" {
					objects = nil
				}
				l.list(of, objects, words[2])
			}
		}
		got := ""
		if object := l.objects[key]; object != nil {
			got = object.ResourceVersion
		}
		require.Equal(t, want, got, script)
		require.Len(t, l.of(of), len(l.objects), script)
		require.Empty(t, l.awaited, script)
	}
}

func TestRecords(t *testing.T) {
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "1", ResourceVersion: "5"}}
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	reads := func(names ...string) cluster.ScoreNames { return cluster.ScoreNames{Names: sets.New(names...)} }
	r := newRecords(Timeouts{})
	require.False(t, r.named(key).reads.Has("room"))
	require.True(t, r.read(p, reads("room"), false), "changes of it were not looked for")
	require.False(t, r.read(p, reads("room"), false))
	require.True(t, r.named(key).reads.Has("room"))
	require.False(t, r.named(key).reads.Has("heat"))
	require.True(t, r.read(p, cluster.ScoreNames{Computed: true}, false))
	require.True(t, r.named(key).reads.Has("heat"), "a computed name may be any")
	require.True(t, r.read(p, cluster.ScoreNames{Computed: true}, true), "bindings were not looked for")
	require.True(t, r.named(key).namesSets)

	warning := placement.Warning{Reason: wellknown.ReasonScoreExpired, Plugin: "AddOn/room/free", Message: "expired"}
	require.Len(t, r.warn(p, []placement.Warning{warning}), 1)
	require.Empty(t, r.warn(p, []placement.Warning{warning}), "one event is enough")
	require.Empty(t, r.warn(p, nil))
	require.Len(t, r.warn(p, []placement.Warning{warning}), 1)

	require.False(t, r.behind(p))
	written := p.DeepCopy()
	written.ResourceVersion = "7"
	r.change(written, func(known *record) { known.version = written.ResourceVersion })
	require.True(t, r.behind(p))
	require.False(t, r.behind(written))

	successor := p.DeepCopy()
	successor.UID = "2"
	require.False(t, r.behind(successor))
	r.read(successor, reads(), false)
	require.EqualValues(t, "2", r.named(key).uid)
	r.forget(key)
	require.Empty(t, r.of)
}

func TestSetMayHaveCluster(t *testing.T) {
	const labels, exclusive = clusterv1beta2.LabelSelector, clusterv1beta2.ExclusiveClusterSetLabel
	with := func(key string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: "us"}}
	}
	for _, test := range []struct {
		kind     clusterv1beta2.SelectorType
		selector *metav1.LabelSelector
		want     bool
	}{
		{exclusive, nil, true}, {"", nil, true}, {"Odd", nil, true},
		{labels, &metav1.LabelSelector{}, true}, {labels, nil, false}, {labels, with("region"), false}, {labels, with("?"), true},
	} {
		set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
		set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: test.kind, LabelSelector: test.selector}
		require.Equal(t, test.want, has(set, map[string]string{clusterv1beta2.ClusterSetLabel: "eu"}), test)
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
	got, err := r.outcome(&placement.Result{}, nil)
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

// reading is a reader of one Placement. If err is set, each read fails.
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

// TestNothingIsWrittenForAPlacementThatHasChanged checks that checkCurrent returns a conflict if the Placement changed on the
// API server. The cache may have received a later change of a cluster, but not the earlier change of the Placement.
func TestNothingIsWrittenForAPlacementThatHasChanged(t *testing.T) {
	decided := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p", UID: "1", Generation: 1, Annotations: map[string]string{wellknown.AnnotationPlacement: "true"},
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
			err := (&reconciler{hub: hub{reader: reading{live: live, err: test.err}}}).checkCurrent(t.Context(), decided)
			require.Equal(t, test.conflict, apierrors.IsConflict(err))
			require.Equal(t, test.conflict || test.err != nil, err != nil)
		})
	}
}

// delays is a queue that records the delay of each added request.
type delays struct {
	queue
	of map[reconcile.Request]time.Duration
	// adding is called for each request without a delay.
	adding func(reconcile.Request)
}

func (d *delays) Add(request reconcile.Request) {
	if d.of[request] = 0; d.adding != nil {
		d.adding(request)
	}
}

func (d *delays) AddAfter(request reconcile.Request, after time.Duration) { d.of[request] = after }

// take returns the recorded delays and resets them.
func (d *delays) take() map[reconcile.Request]time.Duration {
	taken := d.of
	d.of = map[reconcile.Request]time.Duration{}
	return taken
}

// TestPlacementsThatWereWrittenWait checks that the controller's own writes queue a Placement with a delay, and other changes
// without one.
func TestPlacementsThatWereWrittenWait(t *testing.T) {
	q := &delays{of: map[reconcile.Request]time.Duration{}}
	now, later := map[reconcile.Request]time.Duration{requestOf("ns", "p"): 0}, map[reconcile.Request]time.Duration{requestOf("ns", "p"): confirmAfter}

	l := newLedger()
	h := l.handler()
	h.Create(t.Context(), event.CreateEvent{Object: decision("10")}, q)
	require.Equal(t, now, q.take(), "one that was not known")
	l.set(decision("11"))
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: decision("10"), ObjectNew: decision("11")}, q)
	require.Equal(t, later, q.take(), "written here")
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: decision("11"), ObjectNew: decision("12")}, q)
	require.Equal(t, now, q.take(), "written by somebody else")
	moved := decision("13")
	moved.Labels[clusterv1beta1.PlacementLabel] = "other"
	l.set(moved)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: decision("12"), ObjectNew: moved}, q)
	require.Equal(t, map[reconcile.Request]time.Duration{requestOf("ns", "p"): 0, requestOf("ns", "other"): confirmAfter}, q.take())
	h.Delete(t.Context(), event.DeleteEvent{Object: moved}, q)
	require.Equal(t, map[reconcile.Request]time.Duration{requestOf("ns", "other"): 0}, q.take())

	placed := func(uid, version string) *clusterv1beta1.Placement {
		return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: types.UID(uid), ResourceVersion: version}}
	}
	r := &reconciler{records: newRecords(Timeouts{})}
	r.records.change(placed("u", "20"), func(known *record) { known.version = "21" })
	for _, test := range []struct {
		uid, version string
		news         bool
	}{{"u", "20", true}, {"u", "21", false}, {"u", "22", true}, {"v", "21", true}} {
		update := event.UpdateEvent{ObjectOld: placed("u", "19"), ObjectNew: placed(test.uid, test.version)}
		require.Equal(t, test.news, r.isNews().Update(update), "%v", test)
		r.confirm().Update(t.Context(), update, q)
		if test.news {
			require.Empty(t, q.take())
		} else {
			require.Equal(t, later, q.take())
		}
	}
}

// TestLedgerKnowsBeforeTheQueueDoes checks that the ledger has a change before the Placement is queued, since a worker may take
// the Placement at once.
func TestLedgerKnowsBeforeTheQueueDoes(t *testing.T) {
	l := newLedger()
	var found []string
	q := &delays{of: map[reconcile.Request]time.Duration{}, adding: func(request reconcile.Request) {
		found = nil
		for _, object := range l.of(request.NamespacedName) {
			found = append(found, object.ResourceVersion)
		}
	}}
	h := l.handler()
	h.Create(t.Context(), event.CreateEvent{Object: decision("10")}, q)
	require.Equal(t, []string{"10"}, found)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: decision("10"), ObjectNew: decision("11")}, q)
	require.Equal(t, []string{"11"}, found)
	without := decision("12")
	delete(without.Labels, clusterv1beta1.PlacementLabel)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: decision("11"), ObjectNew: without}, q)
	require.Empty(t, found, "it is not the Placement's any more")
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: without, ObjectNew: decision("13")}, q)
	require.Equal(t, []string{"13"}, found)
	h.Delete(t.Context(), event.DeleteEvent{Object: decision("13")}, q)
	require.Empty(t, found)
}

// TestKindsAreThoseOfTheAPIModule checks that the controller uses the types of Open Cluster Management's API module. Programs
// that use this module can then read the controller's objects.
func TestKindsAreThoseOfTheAPIModule(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, AddToScheme(scheme))
	found := map[string]bool{}
	for kind, of := range scheme.AllKnownTypes() {
		if kind.Group != "cluster.open-cluster-management.io" || strings.HasPrefix(of.PkgPath(), "k8s.io/apimachinery/") {
			continue
		}
		require.Equal(t, "open-cluster-management.io/api/cluster/"+kind.Version, of.PkgPath(), kind)
		found[kind.Version+" "+kind.Kind] = true
	}
	for _, kind := range []string{
		"v1 ManagedCluster", "v1beta2 ManagedClusterSet", "v1beta2 ManagedClusterSetBinding",
		"v1alpha1 AddOnPlacementScore", "v1beta1 Placement", "v1beta1 PlacementDecision",
	} {
		require.True(t, found[kind], kind)
	}
}
