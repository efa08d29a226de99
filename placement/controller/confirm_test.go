// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/cel/cluster"
)

// delays is a queue that notes when what is added would come.
type delays struct {
	queue
	of map[reconcile.Request]time.Duration
	// adding is called for what would come at once.
	adding func(reconcile.Request)
}

func (d *delays) Add(request reconcile.Request) {
	if d.of[request] = 0; d.adding != nil {
		d.adding(request)
	}
}

func (d *delays) AddAfter(request reconcile.Request, after time.Duration) { d.of[request] = after }

// take returns what was added.
func (d *delays) take() map[reconcile.Request]time.Duration {
	taken := d.of
	d.of = map[reconcile.Request]time.Duration{}
	return taken
}

// What was written here is decided once more after a while, and what is news at once.
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
	r := &reconciler{records: newRecords()}
	r.records.note(placed("u", "20"), cluster.ScoreNames{})
	r.records.wrote(placed("u", "21"))
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

// Whoever takes a Placement from the queue at once finds in the ledger what it was queued for.
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
