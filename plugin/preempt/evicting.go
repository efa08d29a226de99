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

// Upstream's executor evicts the victims, mostly in a goroutine that goes on after the scheduling cycle. It calls
// PreemptPod for each victim, which is wrapped here:
//
//  1. The devices are held in memory. The scheduling cycle does that as well, whichever comes first.
//  2. The hold is written into the condition of the pod. If that fails no pod is evicted.
//  3. Before each eviction it is checked that the pod still needs the devices.
//  4. The victim is evicted only if it still has its UID, see evictingclient.go.

var (
	errPreemptorGone    = errors.New("the pod for which others are evicted is gone")
	errPreemptorBound   = errors.New("the pod for which others are evicted is bound")
	errPreemptorChanged = errors.New("the pod for which others are evicted was changed")
	errHoldEnded        = errors.New("devices are no longer held for the pod for which others are evicted")
	errFitsAlready      = errors.New("the pod for which others are evicted fits without that")
)

// eviction is one try to evict pods for a pod.
type eviction struct {
	trial *preemptionTrial
	// resumed is the hold that goes on, nil for a new one.
	resumed *hold.Hold

	keeping, writing sync.Once
	// kept is what is held, nil if nothing is. It is set by keeping.
	kept *hold.Hold
	// err is why nothing may be evicted. It is set by writing.
	err error
}

// evictions are the evictions that are under way, by the UID of the pod for which others are evicted.
type evictions struct {
	mutex sync.Mutex
	byPod map[types.UID]*eviction
}

// begin adds an eviction, and removes those that isRunning doesn't report.
func (e *evictions) begin(begun *eviction, isRunning func(types.UID) bool) {
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
	e.byPod[begun.trial.pod.UID] = begun
}

func (e *evictions) of(pod types.UID) *eviction {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.byPod[pod]
}

// preemptPod is the type of upstream's function that evicts one pod.
type preemptPod = func(context.Context, upstream.Candidate, upstream.ExecutorPreemptor, *v1.Pod, string) (bool, error)

// evicting wraps upstream's function.
func (p *Preempter) evicting(evict preemptPod) preemptPod {
	return func(ctx context.Context, on upstream.Candidate, preemptor upstream.ExecutorPreemptor, victim *v1.Pod, plugin string) (bool, error) {
		ctx = context.WithValue(ctx, victimInContext{}, victim)
		e := p.evictions.of(preemptor.UID())
		if e == nil {
			return evict(ctx, on, preemptor, victim, plugin)
		}
		p.keep(ctx, e, on.Name())
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

// record writes the hold into the condition of its pod. If that fails the hold ends.
func (p *Preempter) record(ctx context.Context, e *eviction) error {
	if e.trial.fits() {
		return errFitsAlready
	}
	if e.kept == nil {
		return nil
	}
	condition, err := e.kept.Condition(time.Now())
	if err == nil {
		err = p.Holding.store.Write(ctx, e.kept.Pod, condition, e.kept.Begun)
	}
	if errors.Is(err, hold.ErrEnded) {
		return cmp.Or(p.stillNeeded(e), errHoldEnded)
	}
	if err != nil && e.resumed == nil {
		p.Holding.End(e.kept.Pod.UID, hold.Unrecorded)
	}
	return err
}

// stillNeeded returns why nothing may be evicted any more, nil if it may.
func (p *Preempter) stillNeeded(e *eviction) error {
	if err := p.Holding.gone(e.trial.pod); err != nil {
		return err
	}
	if e.kept == nil {
		return nil
	}
	if held, ok := p.Holding.Of(e.kept.Pod.UID); !ok || held.Try != e.kept.Try {
		return errHoldEnded
	}
	return nil
}

// keep holds what was found on the node. It does so once for an eviction.
func (p *Preempter) keep(ctx context.Context, e *eviction, node string) {
	e.keeping.Do(func() {
		found := e.trial.foundOn(node)
		if found == nil || e.trial.fits() {
			// Extenders may name nodes that were not looked at.
			return
		}
		live := slices.DeleteFunc(slices.Clone(found.pods), func(pod *v1.Pod) bool { return pod.DeletionTimestamp != nil })
		p.Metrics.ObserveVictims(len(live))
		if len(found.claims) == 0 {
			// The claims of the pod have their devices, so it lacks something else.
			return
		}
		kept := p.Holding.Keep(p.holdOf(e, node, found))
		e.kept = &kept
		if p.Holding.gone(e.trial.pod) != nil {
			// The event of its deletion may have been handled before the hold began.
			p.endUnneeded(e.trial.pod)
			return
		}
		klog.FromContext(ctx).Info("Devices are held for a pod for which others are evicted", "pod", klog.KObj(e.trial.pod), "node", klog.KRef("", node),
			"devices", namesOf(kept.Devices()), "victims", klog.KObjSlice(found.pods), "cost", found.cost, "exact", found.exact, "try", kept.Try)
		p.tell(e, node, live)
	})
}

// holdOf is the hold for what was found.
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
		// Its time goes on, so that evictions that fail again and again end.
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

// endUnneeded ends the hold of a pod that is gone or bound by now.
func (p *Preempter) endUnneeded(pod *v1.Pod) {
	current, err := p.Holding.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || current.UID != pod.UID {
		p.Holding.End(pod.UID, hold.Deleted)
		return
	}
	p.Holding.Observe(current)
}

// tell tells the pod and those that are evicted for it.
func (p *Preempter) tell(e *eviction, node string, victims []*v1.Pod) {
	devices := namesOf(e.kept.Devices())
	recorder := p.Handle.EventRecorder()
	recorder.Eventf(e.trial.pod, nil, v1.EventTypeNormal, wellknown.ReasonDevicesHeld, wellknown.ActionPreempting, "%s",
		fmt.Sprintf("%d pods are evicted for devices %s of node %s, which are held for the pod until then", len(victims), devices, node))
	for _, victim := range victims {
		// As in upstream's event, the pod of the higher priority is not named: it may be another tenant's.
		recorder.Eventf(victim, nil, v1.EventTypeNormal, wellknown.ReasonDevicesPreempted, wellknown.ActionPreempting, "%s",
			fmt.Sprintf("evicted for devices of node %s, which a pod of a higher priority wants as a set of %d: %s", node, len(e.kept.Devices()), devices))
	}
}

// recordLater has the hold written where nothing is evicted because all victims are ending already. The scheduling cycle
// doesn't wait for that.
func (p *Preempter) recordLater(ctx context.Context, e *eviction, node string) {
	found := e.trial.foundOn(node)
	if e.kept == nil || found == nil || slices.ContainsFunc(found.pods, func(pod *v1.Pod) bool { return pod.DeletionTimestamp == nil }) {
		return
	}
	pod := e.kept.Pod
	condition, err := e.kept.Condition(time.Now())
	if err != nil {
		klog.FromContext(ctx).Error(err, "The condition of a pod could not be written", "pod", klog.KObj(pod), "condition", wellknown.ConditionDevicesHeld)
		p.Holding.End(pod.UID, hold.Unrecorded)
		return
	}
	p.Holding.store.WriteLater(pod, condition, func(error) { p.Holding.End(pod.UID, hold.Unrecorded) })
}
