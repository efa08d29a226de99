// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
)

// A rank is a priority, and the pods that have this priority.
type rank struct {
	name     string
	priority int32
	// kinds are the names of the kinds of pods of the rank.
	kinds []string
	// nodesPerPod is the number of nodes divided by the number of the rank's pods. If the sum of 1/nodesPerPod for this and all
	// higher ranks is below 1, some node always has only pods of lower ranks. Then each pod of the rank can run after evictions.
	nodesPerPod float64
	// often is the percentage of new pods that have this rank.
	often int
}

// With these ranks, some node never has pods of the upper two ranks, because 2/5 + 1/2 < 1. Pods of the lowest rank need more
// devices than are left.
var ranks = []*rank{
	{name: "high", priority: 3000, kinds: []string{"grid", "line", "plain", "block", "chip", "link"}, nodesPerPod: 2.5, often: 20},
	{name: "middle", priority: 2000, kinds: []string{"grid", "line", "plain", "chip", "link", "quarter", "slot"}, nodesPerPod: 2, often: 30},
	{
		name: "low", priority: 1000, nodesPerPod: 1. / 12, often: 50,
		kinds: []string{"grid", "line", "plain", "plain", "stock", "row", "quarter", "quarter", "quarter", "slot", "slot", "slot"},
	},
}

// pods returns the number of pods that the rank should have.
func (r *rank) pods(nodes int) int { return int(float64(nodes) / r.nodesPerPod) }

// couldRun reports whether a pod of the rank always fits on some node if all pods of lower ranks are evicted.
func (r *rank) couldRun() bool { return r.nodesPerPod > 1 }

const (
	// grace is the maximum time that a pod takes to end. The actual time is random.
	grace = 3 * time.Second
	// With probability 1/onTheirWay, a deletion chooses any pod. Otherwise it chooses a bound pod, if there is one.
	onTheirWay = 20
	// With probability 1/teamed, a new pod belongs to a team: several pods that use one claim. With probability 1/finalized,
	// the object of a deleted pod stays for some time because of a finalizer.
	teamed, finalized = 4, 10
	// teamSize is the number of pods of a team.
	teamSize = 3
	// finalizer is the finalizer that keeps the object of a deleted pod.
	finalizer = "celset.dev/soak"
)

// A life is the history of one pod.
type life struct {
	name    string
	rank    *rank
	kind    *kind
	created time.Time
	// claim is the name of the claim that the pod shares. It is empty if the pod has its own claim.
	claim string
	// controlled is set if a ReplicaSet has created the pod.
	controlled bool
	// bound is the time at which the pod was bound.
	bound time.Time
	node  string
	// deleted is the time at which the test deleted the pod. evicted is the time at which a scheduler evicted it. At most one
	// is set.
	deleted, evicted time.Time
}

func (l *life) isOver() bool { return !l.deleted.IsZero() || !l.evicted.IsZero() }

// pod returns the pod to create.
func (l *life) pod(random *rand.Rand) *corev1.Pod {
	pod := l.kind.pod(l.name)
	if l.claim != "" {
		pod = env.Pod(l.name, l.kind.profile, l.claim)
	}
	pod.Spec.PriorityClassName = l.rank.name
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(grace.Seconds()))
	if random.IntN(finalized) == 0 {
		pod.Finalizers = []string{finalizer}
	}
	return pod
}

// ranked creates and deletes pods, so that each rank has its number of pods. It also acts as the kubelets, which end deleted
// pods, and as controllers, which create evicted pods again.
type ranked struct {
	client    kubernetes.Interface
	namespace string
	random    *rand.Rand
	nodes     int
	problems  []string
	made      int

	mu    sync.Mutex
	lives map[string]*life
	again []*life // evicted, and not created again yet
	// teams maps the name of a shared claim to the pods of the team.
	teams map[string][]*life
	kills []time.Time
	// over is set at the end of the run. Evictions are not recorded any more then.
	over bool
	// ending counts the goroutines that end pods.
	ending sync.WaitGroup
}

func newRanked(t *testing.T, cp *env.Env, nodes int) *ranked {
	t.Helper()
	for _, r := range ranks {
		cp.CreatePriorityClass(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: r.name}, Value: r.priority})
	}
	return &ranked{client: cp.Client(), namespace: namespace, random: rand.New(rand.NewPCG(21, 21)), nodes: nodes, lives: map[string]*life{}, teams: map[string][]*life{}}
}

// watch records when pods are bound, evicted and deleted, until the context ends.
func (r *ranked) watch(ctx context.Context) error {
	return watchPods(ctx, r.client, r.namespace, func(before, obj any) { r.notice(ctx, before, obj) })
}

func (r *ranked) notice(ctx context.Context, before, obj any) {
	pod, ok := obj.(*corev1.Pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok || r.over {
		return
	}
	l := r.lives[pod.Name]
	if l == nil {
		l = replicaLife(pod)
		r.lives[pod.Name] = l
	}
	if pod.Spec.NodeName != "" && l.node == "" {
		l.node, l.bound = pod.Spec.NodeName, time.Now()
	}
	if old, _ := before.(*corev1.Pod); pod.DeletionTimestamp == nil || old != nil && old.DeletionTimestamp != nil {
		return
	}
	if l.deleted.IsZero() {
		l.evicted = time.Now()
		if !l.controlled {
			r.again = append(r.again, l)
		}
	}
	r.ending.Add(1)
	time.AfterFunc(rand.N(grace), func() {
		defer r.ending.Done()
		r.endPod(ctx, pod)
	})
}

// endPod ends a deleted pod, as a kubelet does. It removes the pod's finalizer some time later.
func (r *ranked) endPod(ctx context.Context, pod *corev1.Pod) {
	pods := r.client.CoreV1().Pods(r.namespace)
	err := insist(ctx, func() error {
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	})
	if err == nil && len(pod.Finalizers) > 0 {
		time.Sleep(rand.N(grace))
		err = insist(ctx, func() error {
			_, err := pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			return err
		})
	}
	if err != nil && ctx.Err() == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.problems = append(r.problems, err.Error())
	}
}

// run creates rate pods per second, creates evicted pods again, and deletes pods above the number of their rank, until the
// context ends.
func (r *ranked) run(ctx context.Context, rate int) {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := r.exchange(ctx); err != nil && ctx.Err() == nil {
			r.mu.Lock()
			r.problems = append(r.problems, err.Error())
			r.mu.Unlock()
		}
	}
}

func (r *ranked) exchange(ctx context.Context) error {
	if err := r.addAgain(ctx); err != nil {
		return err
	}
	if err := r.dropClaims(ctx); err != nil {
		return err
	}
	at := r.random.IntN(100)
	for _, rank := range ranks {
		if at -= rank.often; at < 0 {
			if err := r.removeSurplus(ctx, rank); err != nil {
				return err
			}
			return r.add(ctx, rank, kindNamed(rank.kinds[r.random.IntN(len(rank.kinds))]))
		}
	}
	return nil
}

// addAgain creates evicted pods again. Pods of a team use the same claim as before, which may still have its devices.
func (r *ranked) addAgain(ctx context.Context) error {
	r.mu.Lock()
	again := r.again
	r.again = nil
	r.mu.Unlock()
	for _, l := range again {
		if err := r.create(ctx, l.rank, l.kind, l.claim); err != nil {
			return err
		}
	}
	return nil
}

// fill creates as many pods as the rank should have.
func (r *ranked) fill(ctx context.Context, rank *rank) error {
	for range rank.pods(r.nodes) {
		if err := r.add(ctx, rank, kindNamed(rank.kinds[r.random.IntN(len(rank.kinds))])); err != nil {
			return err
		}
	}
	return nil
}

// add creates a pod of a kind, or a team of such pods.
func (r *ranked) add(ctx context.Context, rank *rank, k *kind) error {
	if r.random.IntN(teamed) > 0 {
		return r.create(ctx, rank, k, "")
	}
	claim, err := r.createClaim(ctx, rank, k)
	for range teamSize {
		if err == nil {
			err = r.create(ctx, rank, k, claim)
		}
	}
	return err
}

// create creates a pod. If claim is not empty, the pod uses this claim. Otherwise it gets its own.
func (r *ranked) create(ctx context.Context, rank *rank, k *kind, claim string) error {
	r.made++
	l := &life{name: fmt.Sprintf("%s-%s-%d", rank.name, k.name, r.made), rank: rank, kind: k, created: time.Now(), claim: claim}
	r.mu.Lock()
	r.lives[l.name] = l
	if claim != "" {
		r.teams[claim] = append(r.teams[claim], l)
	}
	r.mu.Unlock()
	pod := l.pod(r.random)
	return insist(ctx, func() error {
		_, err := r.client.CoreV1().Pods(r.namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// removeSurplus deletes pods of a rank until another pod can be created. Usually it chooses a bound pod, as if the pod had
// ended by itself. With probability 1/onTheirWay, it chooses any pod.
func (r *ranked) removeSurplus(ctx context.Context, rank *rank) error {
	alive := r.alive(rank)
	for len(alive) >= rank.pods(r.nodes) {
		at := r.random.IntN(len(alive))
		r.mu.Lock()
		if bound := func(l *life) bool { return l.node != "" }; r.random.IntN(onTheirWay) > 0 && slices.ContainsFunc(alive, bound) {
			for !bound(alive[at]) {
				at = (at + 1) % len(alive)
			}
		}
		l := alive[at]
		alive = slices.Delete(alive, at, at+1)
		over := l.isOver()
		if !over {
			l.deleted = time.Now()
		}
		r.mu.Unlock()
		if over {
			continue
		}
		if err := insist(ctx, func() error { return r.client.CoreV1().Pods(r.namespace).Delete(ctx, l.name, metav1.DeleteOptions{}) }); err != nil {
			return err
		}
	}
	return nil
}

// alive returns the pods of a rank that have not been deleted, in the order of their creation.
func (r *ranked) alive(rank *rank) []*life {
	r.mu.Lock()
	defer r.mu.Unlock()
	var alive []*life
	for _, l := range r.lives {
		if l.rank == rank && !l.controlled && !l.isOver() {
			alive = append(alive, l)
		}
	}
	slices.SortFunc(alive, func(a, b *life) int { return a.created.Compare(b.created) })
	return alive
}

// waiting returns the names of unbound pods that could run after evictions.
func (r *ranked) waiting() []string {
	var names []string
	for _, rank := range ranks {
		for _, l := range r.alive(rank) {
			r.mu.Lock()
			if rank.couldRun() && l.node == "" {
				names = append(names, l.name)
			}
			r.mu.Unlock()
		}
	}
	return names
}

// end stops the recording of evictions, and waits until deleted pods have ended.
func (r *ranked) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.ending.Wait()
}

// summary returns the explanations of all evictions so far.
func (r *ranked) summary(d decisions) explained {
	r.mu.Lock()
	defer r.mu.Unlock()
	return explainAll(r.lives, d, r.kills)
}

// tooMany returns a complaint for each pod that caused too many evictions.
func (r *ranked) tooMany(d decisions) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return tooMany(r.lives, d)
}

// killed records the time at which a scheduler was killed.
func (r *ranked) killed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kills = append(r.kills, time.Now())
}
