// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// settlePatience is for the scheduler to place all that fits.
const settlePatience = time.Minute

// scheduled is a queue whose claims are placed by a scheduler that runs. After each event it is waited for
// until nothing is left to be done: what came is on a node or was found not to fit, and nothing that
// waits would fit into what is free.
type scheduled struct {
	client    kubernetes.Interface
	machine   *Machine
	namespace string
	profile   string
	nodes     map[string]int // numbers by names
	// affinity is for all pods, if not nil.
	affinity *corev1.Affinity
	// expects tells whether the simulation chooses the same with so much free.
	expects func(free []Set, size int, got placement) (bool, error)

	pods, claims cache.Store
	changed      chan struct{}

	places map[string]int // of devices, by names
	free   []Set
	sizes  map[int]int // of the claims that there are
	placed map[int]placement
	// departed is what became free last: the scheduler may hear of it after the next claim.
	departed placement
	// decisions are how many claims were placed, late those before the scheduler heard of what became
	// free last. others are those that the simulation would have placed elsewhere.
	decisions, late int
	others          []string
}

// follow begins to watch pods and claims, until the context ends.
func (s *scheduled) follow(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(s.namespace))
	pods, claims := factory.Core().V1().Pods().Informer(), factory.Resource().V1().ResourceClaims().Informer()
	s.pods, s.claims, s.changed = pods.GetStore(), claims.GetStore(), make(chan struct{}, 1)
	notice := func() {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{pods, claims} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notice() }, UpdateFunc: func(_, _ any) { notice() }, DeleteFunc: func(any) { notice() },
		}); err != nil {
			return err
		}
	}
	factory.StartWithContext(ctx)
	context.AfterFunc(ctx, factory.Shutdown)
	factory.WaitForCacheSync(ctx.Done())
	return ctx.Err()
}

func nameOf(claim int) string { return fmt.Sprintf("claim-%d", claim) }

// arrive creates a claim and a pod that uses it.
func (s *scheduled) arrive(claim, size int) (placement, bool, error) {
	ctx := context.Background()
	object := s.machine.claim(size)
	object.Namespace, object.Name = s.namespace, nameOf(claim)
	if _, err := s.client.ResourceV1().ResourceClaims(s.namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return placement{}, false, err
	}
	if _, err := s.client.CoreV1().Pods(s.namespace).Create(ctx, s.pod(object.Name), metav1.CreateOptions{}); err != nil {
		return placement{}, false, err
	}
	s.sizes[claim] = size
	placed, err := s.settle()
	got, ok := placed[claim]
	return got, ok, err
}

func (s *scheduled) pod(claim string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PodSpec{
			SchedulerName: s.profile, Affinity: s.affinity,
			ResourceClaims: []corev1.PodResourceClaim{{Name: "mla", ResourceClaimName: &claim}},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "mla"}}},
			}},
		},
	}
}

// depart deletes the pod and its claim.
func (s *scheduled) depart(claim, _ int, had placement) (map[int]placement, error) {
	if err := s.remove(nameOf(claim)); err != nil {
		return nil, err
	}
	delete(s.sizes, claim)
	delete(s.placed, claim)
	s.free[had.node] |= had.set
	s.departed = had
	return s.settle()
}

func (s *scheduled) remove(name string) error {
	ctx := context.Background()
	if err := s.client.CoreV1().Pods(s.namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		return err
	}
	return s.client.ResourceV1().ResourceClaims(s.namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// end deletes what is left, and waits until it is gone.
func (s *scheduled) end() error {
	for claim := range s.sizes {
		if err := s.remove(nameOf(claim)); err != nil {
			return err
		}
	}
	clear(s.sizes)
	clear(s.placed)
	_, err := s.settle()
	return err
}

// settle waits, and returns what was placed since the last time.
func (s *scheduled) settle() (map[int]placement, error) {
	deadline := time.NewTimer(settlePatience)
	defer deadline.Stop()
	for {
		placed, unsettled, err := s.look()
		if err != nil {
			return nil, err
		}
		if unsettled == "" {
			return placed, s.enter(placed)
		}
		select {
		case <-s.changed:
		case <-deadline.C:
			return nil, fmt.Errorf("after %v %s", settlePatience, unsettled)
		}
	}
}

// look returns what was placed since the last time, and what is left to be done, empty if nothing is.
func (s *scheduled) look() (placed map[int]placement, unsettled string, err error) {
	if pods, claims := len(s.pods.ListKeys()), len(s.claims.ListKeys()); pods != len(s.sizes) || claims != len(s.sizes) {
		return nil, fmt.Sprintf("there are %d pods and %d claims, of %d", pods, claims, len(s.sizes)), nil
	}
	placed, free, waiting := map[int]placement{}, slices.Clone(s.free), map[int]int{}
	for claim, size := range s.sizes {
		if _, known := s.placed[claim]; known {
			continue
		}
		pod, got, err := s.read(claim)
		switch {
		case err != nil:
			return nil, "", err
		case pod == nil:
			return nil, fmt.Sprintf("there is no claim %d", claim), nil
		case pod.Spec.NodeName != "":
			placed[claim] = got
			free[got.node] &^= got.set
		case got.set != 0:
			return nil, fmt.Sprintf("claim %d has devices and its pod no node", claim), nil
		case !refused(pod):
			return nil, fmt.Sprintf("nothing is known of the pod of claim %d", claim), nil
		default:
			waiting[size] = claim
		}
	}
	for size, claim := range waiting {
		for node := range free {
			if len(s.machine.fitting(free[node], size)) > 0 {
				return nil, fmt.Sprintf("claim %d for %d devices waits, and fits on node %d, of which %b are free", claim, size, node, free[node]), nil
			}
		}
	}
	return placed, "", nil
}

// read returns the pod of a claim and the devices that it has, no pod if one of both isn't known yet.
func (s *scheduled) read(claim int) (*corev1.Pod, placement, error) {
	key := s.namespace + "/" + nameOf(claim)
	pod, ok1, err1 := s.pods.GetByKey(key)
	object, ok2, err2 := s.claims.GetByKey(key)
	if err1 != nil || err2 != nil || !ok1 || !ok2 {
		return nil, placement{}, err1
	}
	var got placement
	allocation := object.(*resourceapi.ResourceClaim).Status.Allocation
	if allocation == nil {
		// What is known of the pod may be newer: there is no node without devices.
		if pod.(*corev1.Pod).Spec.NodeName != "" {
			return nil, got, nil
		}
		return pod.(*corev1.Pod), got, nil
	}
	for _, result := range allocation.Devices.Results {
		node, known := s.nodes[result.Pool]
		if !known {
			return nil, got, fmt.Errorf("claim %d has a device of the pool %s", claim, result.Pool)
		}
		got.node = node
		got.set |= Set(1) << s.places[result.Device]
	}
	got.score = s.machine.score(got.set)
	return pod.(*corev1.Pod), got, nil
}

// refused tells whether the scheduler found no node for a pod.
func refused(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// enter notes what was placed. It does not trust the scheduler.
func (s *scheduled) enter(placed map[int]placement) error {
	before := slices.Clone(s.free)
	var claims []int
	for claim, got := range placed {
		if size := s.sizes[claim]; !s.free[got.node].has(got.set) || got.set.len() != size || !s.machine.willDo(got.set) {
			return fmt.Errorf("%s, claim %d for %d devices: of %b on node %d it got %b", s.machine.Name, claim, size, s.free[got.node], got.node, got.set)
		}
		s.free[got.node] &^= got.set
		s.placed[claim] = got
		claims = append(claims, claim)
	}
	s.decisions += len(claims)
	as, err := s.asSimulated(before, claims)
	if err != nil || as {
		return err
	}
	behind := slices.Clone(before)
	behind[s.departed.node] &^= s.departed.set
	if as, err = s.asSimulated(behind, claims); as {
		s.late += len(claims)
	} else if err == nil {
		s.others = append(s.others, fmt.Sprintf("with %b free: %v", before, placed))
	}
	return err
}

// asSimulated tells whether there is an order of the claims in which the simulation chooses the same.
func (s *scheduled) asSimulated(free []Set, claims []int) (bool, error) {
	if len(claims) == 0 {
		return true, nil
	}
	tried := map[placement]bool{}
	for i, claim := range claims {
		got := s.placed[claim]
		if tried[got] {
			continue
		}
		tried[got] = true
		if same, err := s.expects(free, s.sizes[claim], got); err != nil {
			return false, err
		} else if !same {
			continue
		}
		rest := slices.Clone(free)
		rest[got.node] &^= got.set
		if same, err := s.asSimulated(rest, slices.Delete(slices.Clone(claims), i, i+1)); same || err != nil {
			return same, err
		}
	}
	return false, nil
}
