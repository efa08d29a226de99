// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement"
)

// world is a hub with the Placement ns/p, which selects all clusters. Several leaders decide it. groups maps each cluster to
// its decision group.
type world struct {
	*stored
	placement *clusterv1beta1.Placement
	groups    map[string]string
	clusters  []*clusterv1.ManagedCluster
	// late has requests that may still be executed although their leaders no longer wait for the response.
	late []*request
	// answers counts what happened to requests.
	answers map[string]int
}

func newWorld(clusters int) *world {
	w := &world{
		stored: &stored{objects: map[identity]client.Object{}, written: func(string, client.Object) {}},
		placement: &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "u", Generation: 1, ResourceVersion: "1", Annotations: map[string]string{wellknown.AnnotationPlacement: "true"},
		}},
		groups: map[string]string{}, answers: map[string]int{},
	}
	for i := range clusters {
		w.label(fmt.Sprintf("c%d", i), "")
	}
	w.group(0, "a", "b")
	return w
}

// label assigns a cluster to a decision group.
func (w *world) label(cluster, group string) {
	w.groups[cluster] = group
	w.clusters = nil
	for i := range len(w.groups) {
		name := fmt.Sprintf("c%d", i)
		w.clusters = append(w.clusters, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: w.groups[name], Labels: map[string]string{clusterv1beta2.ClusterSetLabel: "set", "group": w.groups[name]},
		}})
	}
}

// group sets the decision groups of the Placement in this order. length is the number of clusters in a group, 0 for no limit.
func (w *world) group(length int, names ...string) {
	w.placement.Generation++
	strategy := clusterv1beta1.GroupStrategy{ClustersPerDecisionGroup: intstr.FromString("100%")}
	if length > 0 {
		strategy.ClustersPerDecisionGroup = intstr.FromInt(length)
	}
	for _, name := range names {
		strategy.DecisionGroups = append(strategy.DecisionGroups, clusterv1beta1.DecisionGroup{
			GroupName:       name,
			ClusterSelector: clusterv1beta1.GroupClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"group": name}}},
		})
	}
	w.placement.Spec.DecisionStrategy.GroupStrategy = strategy
}

// request is the write of a PlacementDecision. Its leader waits for the response.
type request struct {
	identity
	verb   string
	do     func() (client.Object, error)
	answer chan error
	// into is the leader's object. It receives the content that the hub stored.
	into client.Object
}

var errLost = errors.New("the connection was lost")

// leader is a process that acts as the leader. It decides the Placement until it sends a write, and continues after the
// response.
type leader struct {
	*reconciler
	*world
	// cache has the objects that the watch has delivered: the first seen versions of the hub's history.
	cache map[identity]client.Object
	seen  int

	requests chan *request
	done     chan error
	// waits is the request whose response the leader waits for, or nil.
	waits *request
	// deciding is true while a decision is in progress.
	deciding bool
}

func (w *world) newLeader() *leader {
	l := &leader{world: w, cache: map[identity]client.Object{}, requests: make(chan *request), done: make(chan error)}
	l.begin()
	return l
}

// begin restarts the process. Its watch continues where it was.
func (l *leader) begin() {
	timeouts := Timeouts{Turn: time.Hour, Total: time.Hour}.orDefaults()
	scheduler, err := newScheduler(placement.Config{}, timeouts)
	if err != nil {
		panic(err)
	}
	l.reconciler = &reconciler{
		hub:    hub{client: writes{leader: l}, reader: reads{leader: l}, ledger: newLedger(), profiles: "fleet"},
		events: &events.FakeRecorder{}, scheduler: scheduler, records: newRecords(timeouts), observer: unobserved{}, now: time.Now,
	}
	l.reconciler.clusters.collect = func(context.Context) ([]*clusterv1.ManagedCluster, error) { return l.clusters, nil }
	l.scores.collect = func(context.Context) (*scores, error) { return &scores{}, nil }
	for _, object := range l.cache {
		l.tell(told{object: object})
	}
}

func (l *leader) tell(t told) {
	if l.cache[identify(t.object)] = t.object; t.gone {
		delete(l.cache, identify(t.object))
	}
	switch of, is := t.object.(*clusterv1beta1.PlacementDecision); {
	case is && t.gone:
		l.ledger.remove(of)
	case is:
		l.ledger.set(of)
	}
}

// watch delivers the next versions of the hub's history to the leader.
func (l *leader) watch(versions int) {
	for range min(versions, len(l.history)-l.seen) {
		l.tell(l.history[l.seen])
		l.seen++
	}
}

// start starts a decision if none is in progress.
func (l *leader) start() {
	if l.deciding {
		return
	}
	l.deciding = true
	l.reconciler.clusters.changed()
	go func() {
		_, err := l.reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "p"}})
		l.done <- err
	}()
	l.wait()
}

func (l *leader) wait() {
	select {
	case l.waits = <-l.requests:
	case err := <-l.done:
		l.waits, l.deciding = nil, false
		if err != nil {
			l.answers["failed decision"]++
		}
	}
}

// These are the possible results of a request.
const (
	done       = "done"
	answerLost = "answer lost"
	refused    = "refused"
	late       = "late"
)

// answer ends the request that the leader waits for, with the given result. Then the leader continues.
func (l *leader) answer(what string) {
	r := l.waits
	l.answers[what]++
	var err error
	switch what {
	case done:
		err = l.serve(r)
	case answerLost:
		_ = l.serve(&request{identity: r.identity, verb: r.verb, do: r.do})
		err = errLost
	case refused:
		err = errLost
	case late:
		l.late = append(l.late, r)
		err = errLost
	}
	r.answer <- err
	l.wait()
}

// serve executes a request at the hub.
func (w *world) serve(r *request) error {
	object, err := r.do()
	if err != nil {
		w.answers[string(apierrors.ReasonForError(err))]++
	} else if object != nil && r.into != nil {
		assign(r.into, object)
	}
	return err
}

// arrive executes the oldest late request at the hub.
func (w *world) arrive() {
	r := w.late[0]
	w.late = w.late[1:]
	w.answers["arrived"]++
	_ = w.serve(&request{identity: r.identity, verb: r.verb, do: r.do})
}

// finish completes a decision. All its requests succeed.
func (l *leader) finish() {
	for l.start(); l.deciding; l.answer(done) {
	}
}

// give rejects the leader's requests until its decision ends with an error.
func (l *leader) give() {
	for l.deciding {
		l.answer(refused)
	}
}

// reads is a client that reads from the API server.
type reads struct {
	client.Reader
	*leader
}

func (r reads) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if of, is := into.(*clusterv1beta1.Placement); is {
		r.world.placement.DeepCopyInto(of)
		return nil
	}
	into.SetName(key.Name)
	object := r.objects[identify(into)]
	if object == nil {
		return apierrors.NewNotFound(identify(into).resource(), key.Name)
	}
	assign(into, object)
	return nil
}

func (r reads) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	listed(r.objects, into)
	into.SetResourceVersion(strconv.Itoa(r.version))
	return nil
}

// writes is the leader's client. It reads from the leader's cache and sends writes to the hub.
type writes struct {
	client.Client
	*leader
}

func (w writes) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return reads{leader: w.leader}.Get(ctx, key, into, options...)
}

func (w writes) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *clusterv1beta2.ManagedClusterSetList:
		list.Items = []clusterv1beta2.ManagedClusterSet{{ObjectMeta: metav1.ObjectMeta{Name: "set"}}}
	case *clusterv1beta2.ManagedClusterSetBindingList:
		list.Items = []clusterv1beta2.ManagedClusterSetBinding{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "set"},
		}}
	default:
		listed(w.cache, into)
	}
	return nil
}

// send sends a request and waits for its response.
func (w writes) send(verb string, object client.Object, do func(client.Object) (client.Object, error)) error {
	sent := copied(object)
	r := &request{
		identity: identify(object), verb: verb, answer: make(chan error), into: object,
		do: func() (client.Object, error) { return do(sent) },
	}
	w.requests <- r
	return <-r.answer
}

func (w writes) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	return w.send("create", object, w.create)
}

func (w writes) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	return w.send("update", object, func(o client.Object) (client.Object, error) { return w.update(o, false) })
}

// Patch stores the object as an update does, because the object already has the wanted content and a version.
func (w writes) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	requireVersion(object, patch)
	return w.send("patch", object, func(o client.Object) (client.Object, error) { return w.update(o, false) })
}

func (w writes) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	var with client.DeleteOptions
	with.ApplyOptions(options)
	preconditions := client.Preconditions(*with.Preconditions)
	return w.send("delete", object, func(o client.Object) (client.Object, error) { return nil, w.delete(o, preconditions) })
}

func (w writes) Status() client.SubResourceWriter { return statuses{of: w} }

// statuses writes the status of a Placement at once, and sends the status of a PlacementDecision as a request.
type statuses struct {
	client.SubResourceWriter
	of writes
}

func (s statuses) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	if of, is := object.(*clusterv1beta1.Placement); is {
		of.Status.DeepCopyInto(&s.of.world.placement.Status)
		return nil
	}
	requireVersion(object, patch)
	return s.of.send("status", object, func(o client.Object) (client.Object, error) { return s.of.update(o, true) })
}

// requireVersion panics if a patch has no resource version.
func requireVersion(object client.Object, patch client.Patch) {
	if content, err := patch.Data(object); err != nil || !strings.Contains(string(content), `"resourceVersion":`) {
		panic(fmt.Sprintf("a patch without a version: %s, %v", content, err))
	}
}

// assign copies object into into, which has the same type.
func assign(into, object client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
}
