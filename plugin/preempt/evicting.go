// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/plugin/hold"
)

// Upstream's executor evicts the victims, mostly in a goroutine that outlives the scheduling cycle. The executor calls
// PreemptPod for each victim. This file wraps PreemptPod with these steps:
//
//  1. The devices are held in memory, unless the scheduling cycle has done this already.
//  2. The hold is written into the condition of the preemptor. If the write fails, no pod is evicted.
//  3. Before each eviction, the wrapper checks that the preemptor still needs the devices.
//  4. The request to evict has the victim's UID as a precondition (evictingclient.go).

var (
	errPreemptorGone    = errors.New("the pod that needs the devices is gone")
	errPreemptorBound   = errors.New("the pod that needs the devices is already bound")
	errPreemptorChanged = errors.New("the pod that needs the devices was changed")
	errHoldEnded        = errors.New("devices are no longer held for the pod that needs them")
	errFitsAlready      = errors.New("the pod that needs the devices fits without evictions")
)

// eviction is one attempt to evict pods for a preemptor.
type eviction struct {
	trial *preemptionTrial
	// resumed is the hold whose evictions continue, nil for a new hold.
	resumed *hold.Hold

	holding, writing sync.Once
	// held is the hold that reserves the devices of this eviction, nil if no devices are reserved. holdDevices sets it once.
	held *hold.Hold
	// err is the reason why no pod may be evicted, nil if pods may be evicted. record returns it once.
	err error
}

// evictions maps the UID of each preemptor to its eviction in progress.
type evictions struct {
	mutex sync.Mutex
	byPod map[types.UID]*eviction
}

// begin adds an eviction. If isRunning returns false for a preemptor, begin removes the evictions of that preemptor.
func (e *evictions) begin(added *eviction, isRunning func(types.UID) bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.byPod == nil {
		e.byPod = map[types.UID]*eviction{}
	}
	for uid := range e.byPod {
		if !isRunning(uid) {
			delete(e.byPod, uid)
		}
	}
	e.byPod[added.trial.pod.UID] = added
}

func (e *evictions) of(pod types.UID) *eviction {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.byPod[pod]
}

// preemptPod is the type of upstream's function that evicts one pod.
type preemptPod = func(context.Context, upstream.Candidate, upstream.ExecutorPreemptor, *v1.Pod, string) (bool, error)

// evicting wraps upstream's function with the steps at the top of this file.
func (p *Preempter) evicting(evict preemptPod) preemptPod {
	return func(ctx context.Context, on upstream.Candidate, preemptor upstream.ExecutorPreemptor, victim *v1.Pod, plugin string) (bool, error) {
		ctx = context.WithValue(ctx, victimInContext{}, victim)
		e := p.evictions.of(preemptor.UID())
		if e == nil {
			return evict(ctx, on, preemptor, victim, plugin)
		}
		p.holdDevices(ctx, e, on.Name())
		e.writing.Do(func() { e.err = p.record(ctx, e) })
		if e.err != nil {
			return false, e.err
		}
		if err := p.stillNeeded(e); err != nil {
			return false, err
		}
		inMemory, err := evict(ctx, on, preemptor, victim, plugin)
		if err == nil {
			p.Holding.Evicted(preemptor.UID(), victim.UID, inMemory)
		}
		return inMemory, err
	}
}

// record writes the hold into the condition of the preemptor. If the write fails and the hold is new, record ends the hold.
func (p *Preempter) record(ctx context.Context, e *eviction) error {
	if e.trial.fits() {
		return errFitsAlready
	}
	if e.held == nil {
		return nil
	}
	condition, err := e.held.Condition(time.Now())
	if err == nil {
		err = p.Holding.store.Write(ctx, e.held.Pod, condition, e.held.Began)
	}
	if errors.Is(err, hold.ErrEnded) {
		return cmp.Or(p.stillNeeded(e), errHoldEnded)
	}
	if err != nil && e.resumed == nil {
		p.Holding.End(e.held.Pod.UID, hold.Unrecorded)
	}
	return err
}

// stillNeeded returns the reason why no more victims may be evicted: the preemptor is gone or bound, or its hold has ended.
func (p *Preempter) stillNeeded(e *eviction) error {
	if err := p.Holding.gone(e.trial.pod); err != nil {
		return err
	}
	if e.held == nil {
		return nil
	}
	if held, ok := p.Holding.Of(e.held.Pod.UID); !ok || held.Try != e.held.Try {
		return errHoldEnded
	}
	return nil
}

// holdDevices holds the devices that the simulation found on the node. Only the first call for an eviction has an effect.
func (p *Preempter) holdDevices(ctx context.Context, e *eviction, node string) {
	e.holding.Do(func() {
		found := e.trial.foundOn(node)
		if found == nil || e.trial.fits() {
			// Scheduler extenders may return nodes that were not simulated.
			return
		}
		live := slices.DeleteFunc(slices.Clone(found.pods), func(pod *v1.Pod) bool { return pod.DeletionTimestamp != nil })
		p.Metrics.ObserveVictims(len(live))
		if len(found.claims) == 0 {
			// All claims of the preemptor are allocated, so it needs the evictions for another resource.
			return
		}
		kept := p.Holding.Begin(p.holdOf(e, node, found))
		e.held = &kept
		if p.Holding.gone(e.trial.pod) != nil {
			// The preemptor was deleted or bound. Its event may have been handled before the hold began, so the hold is ended here.
			p.endUnneeded(e.trial.pod)
			return
		}
		klog.FromContext(ctx).Info("Devices are held for a pod for which others are evicted", "pod", klog.KObj(e.trial.pod), "node", klog.KRef("", node),
			"devices", namesOf(kept.Devices()), "victims", klog.KObjSlice(found.pods), "cost", found.cost, "exact", found.exact, "try", kept.Try)
		p.recordEvents(e, node, live)
	})
}

// holdOf returns the hold that reserves the devices in found for the preemptor.
func (p *Preempter) holdOf(e *eviction, node string, found *foundVictims) hold.Hold {
	pod := e.trial.pod
	held := hold.Hold{Pod: pod, Node: node, Claims: found.claims, Frees: found.frees, Retry: func() { p.Holding.Activate(pod) }}
	grace := time.Duration(0)
	for _, victim := range found.pods {
		held.Victims = append(held.Victims, victim.UID)
		grace = max(grace, min(gracePeriod(victim), maxGrace*p.Args.HoldTimeout.Duration))
	}
	held.Until = time.Now().Add(p.Args.HoldTimeout.Duration + grace)
	if e.resumed != nil {
		// A resumed hold keeps its deadline, so that repeated failures of evictions end the hold.
		held.Until = e.resumed.Until
		held.Victims = union(e.resumed.Victims, held.Victims)
		held.Frees = union(e.resumed.Frees, held.Frees)
	}
	return held
}

func union(a, b []types.UID) []types.UID {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// endUnneeded ends the hold for a preemptor that is gone or bound.
func (p *Preempter) endUnneeded(pod *v1.Pod) {
	current, err := p.Holding.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || current.UID != pod.UID {
		p.Holding.End(pod.UID, hold.Deleted)
		return
	}
	p.Holding.Observe(current)
}

// recordEvents records one event for the preemptor and one for each victim.
func (p *Preempter) recordEvents(e *eviction, node string, victims []*v1.Pod) {
	devices := namesOf(e.held.Devices())
	recorder := p.Handle.EventRecorder()
	recorder.Eventf(e.trial.pod, nil, v1.EventTypeNormal, wellknown.ReasonDevicesHeld, wellknown.ActionPreempting, "%s",
		fmt.Sprintf("%d pods are evicted to free devices %s of node %s. The devices are held for this pod", len(victims), devices, node))
	for _, victim := range victims {
		// Like upstream's event, this event does not name the preemptor, which may belong to another tenant.
		recorder.Eventf(victim, nil, v1.EventTypeNormal, wellknown.ReasonDevicesPreempted, wellknown.ActionPreempting, "%s",
			fmt.Sprintf("evicted to free devices of node %s for a pod of a higher priority, which needs a set of %d: %s", node, len(e.held.Devices()), devices))
	}
}

// recordLater writes the hold in the background if all victims are terminating already. Usually the first eviction records the
// hold, but then there are no evictions.
func (p *Preempter) recordLater(ctx context.Context, e *eviction, node string) {
	found := e.trial.foundOn(node)
	if e.held == nil || found == nil || slices.ContainsFunc(found.pods, func(pod *v1.Pod) bool { return pod.DeletionTimestamp == nil }) {
		return
	}
	pod := e.held.Pod
	condition, err := e.held.Condition(time.Now())
	if err != nil {
		klog.FromContext(ctx).Error(err, "The condition of a pod could not be written", "pod", klog.KObj(pod), "condition", wellknown.ConditionDevicesHeld)
		p.Holding.End(pod.UID, hold.Unrecorded)
		return
	}
	p.Holding.store.WriteLater(pod, condition, func(error) { p.Holding.End(pod.UID, hold.Unrecorded) })
}
