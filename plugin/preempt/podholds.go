// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/plugin/hold"
	"github.com/celset/celset/plugin/metrics"
)

// PodHolds is the set of holds of all profiles of a scheduler. It restores holds from the conditions of pods. It ends a hold
// when the preemptor or a claim of the hold is gone.
type PodHolds struct {
	*hold.Holds
	store    *hold.Store
	pods     corelisters.PodLister
	claims   resourcelisters.ResourceClaimLister
	activate func(*v1.Pod)
	logger   klog.Logger
	restored sync.Once

	// podIndex and claimIndex find pods and claims by UID, because a recorded hold has no names of victims or their claims.
	podIndex, claimIndex cache.Indexer

	// mutex guards profiles.
	mutex sync.Mutex
	// profiles has the names of this scheduler's profiles. Holds for pods with another schedulerName are foreign.
	profiles sets.Set[string]
}

// NewPodHolds returns an empty set of holds. It writes the conditions of pods in the background until ctx is done.
func NewPodHolds(ctx context.Context, handle fwk.Handle, measured *metrics.Metrics, activate func(*v1.Pod)) (*PodHolds, error) {
	factory := handle.SharedInformerFactory()
	h := &PodHolds{
		store: hold.NewStore(handle.ClientSet(), clock.RealClock{}), pods: factory.Core().V1().Pods().Lister(),
		claims: factory.Resource().V1().ResourceClaims().Lister(), activate: activate, logger: klog.FromContext(ctx), profiles: sets.New[string](),
	}
	h.Holds = hold.New(clock.RealClock{}, func(ended hold.Ended) { h.ended(ended, measured) })
	if err := errors.Join(h.index(factory), h.watch(factory)); err != nil {
		return nil, err
	}
	measured.WatchHolds(h.Count)
	go h.store.Run(ctx)
	return h, nil
}

// ended counts and logs the end of a hold, and records the end in the condition of the preemptor.
func (h *PodHolds) ended(ended hold.Ended, measured *metrics.Metrics) {
	if ended.Foreign {
		return
	}
	measured.ObserveHoldEnd(string(ended.How), ended.Evicted)
	h.logger.Info("Devices are no longer held for a pod", "pod", klog.KObj(ended.Pod), "node", klog.KRef("", ended.Node), "end", ended.How,
		"victims", ended.Evicted, "try", ended.Try)
	h.store.WriteLater(ended.Pod, ended.Condition(time.Now()), nil)
	if ended.Heir != nil {
		h.inherited(ended.Heir)
	}
}

// inherited records that a hold was passed to its heir, another pod that uses the claim. If the heir is gone, the hold ends and
// may be passed on again.
func (h *PodHolds) inherited(heir *hold.Hold) {
	h.logger.Info("Devices are held for another pod of the claim", "pod", klog.KObj(heir.Pod), "node", klog.KRef("", heir.Node), "devices", namesOf(heir.Devices()))
	current, err := h.pods.Pods(heir.Pod.Namespace).Get(heir.Pod.Name)
	if err != nil || current.UID != heir.Pod.UID {
		h.End(heir.Pod.UID, hold.Deleted)
		return
	}
	condition, err := heir.Condition(time.Now())
	if err != nil {
		h.End(heir.Pod.UID, hold.Unrecorded)
		return
	}
	h.store.WriteLater(heir.Pod, condition, func(error) { h.End(heir.Pod.UID, hold.Unrecorded) })
	h.Observe(current)
}

// Add adds a profile of this scheduler. Holds for the profile's pods are then not foreign.
func (h *PodHolds) Add(profile string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.profiles.Insert(profile)
}

func (h *PodHolds) isForeign(pod *v1.Pod) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return !h.profiles.Has(pod.Spec.SchedulerName)
}

// TakeOver restores all holds that the conditions of pods record, including other schedulers' holds. It must run before any
// profile tries its first pod, which could otherwise get held devices. Later calls do nothing.
func (h *PodHolds) TakeOver() {
	h.restored.Do(func() {
		pods, err := h.pods.List(labels.Everything())
		if err != nil {
			h.logger.Error(err, "Could not find out for which pods devices were held")
			return
		}
		for _, pod := range pods {
			h.restoreFor(pod, h.isForeign(pod))
			h.tidy(pod)
		}
	})
}

// tidy sets the condition of a bound or ended pod to False. An earlier process may have stopped before it could.
func (h *PodHolds) tidy(pod *v1.Pod) {
	condition := hold.ConditionOf(pod)
	if condition == nil || condition.Status != v1.ConditionTrue || h.isForeign(pod) || pod.DeletionTimestamp != nil {
		return
	}
	if _, over := hold.IsOver(pod, ""); over {
		ended := hold.Ended{Hold: hold.Hold{Pod: pod}, How: hold.Bound}
		h.store.WriteLater(pod, ended.Condition(time.Now()), nil)
	}
}

func (h *PodHolds) restoreFor(pod *v1.Pod, foreign bool) {
	restored, err := h.Restore(pod, foreign, func() { h.activate(pod) })
	switch {
	case err != nil:
		h.logger.Error(err, "The condition of a pod that records its held devices can't be read; no devices are held for the pod", "pod", klog.KObj(pod), "condition", wellknown.ConditionDevicesHeld)
	case restored:
		h.logger.Info("Devices are held again for a pod", "pod", klog.KObj(pod), "foreign", foreign)
	}
}

// uidIndex is the name of the informers' index by UID.
const uidIndex = "celset-uid"

func indexUID(object any) ([]string, error) {
	found, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	return []string{string(found.GetUID())}, nil
}

// index adds an index by UID to the informers of pods and claims.
func (h *PodHolds) index(factory informers.SharedInformerFactory) error {
	pods, claims := factory.Core().V1().Pods().Informer(), factory.Resource().V1().ResourceClaims().Informer()
	for _, informer := range []cache.SharedIndexInformer{pods, claims} {
		if err := informer.AddIndexers(cache.Indexers{uidIndex: indexUID}); err != nil {
			return fmt.Errorf("look up victims and their claims by UID: %w", err)
		}
	}
	h.podIndex, h.claimIndex = pods.GetIndexer(), claims.GetIndexer()
	return nil
}

// podsOf returns the existing pods with the given UIDs.
func (h *PodHolds) podsOf(uids []types.UID) (found []*v1.Pod) {
	return foundBy[*v1.Pod](h.podIndex, uids)
}

// foundBy returns the existing objects with the given UIDs.
func foundBy[T any](index cache.Indexer, uids []types.UID) (found []T) {
	for _, uid := range uids {
		objects, err := index.ByIndex(uidIndex, string(uid))
		if err != nil {
			continue
		}
		for _, object := range objects {
			if is, ok := object.(T); ok {
				found = append(found, is)
			}
		}
	}
	return found
}

// watch starts to end holds whose pods or claims are gone, and to restore holds that other schedulers record.
func (h *PodHolds) watch(factory informers.SharedInformerFactory) error {
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { h.observe(object) },
		UpdateFunc: func(_, object any) { h.observe(object) },
		DeleteFunc: func(object any) {
			if pod, is := deleted(object).(*v1.Pod); is {
				h.End(pod.UID, hold.Deleted)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch pods for which devices are held: %w", err)
	}
	_, err = factory.Resource().V1().ResourceClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: h.observeClaim,
		DeleteFunc: func(object any) {
			if claim, is := deleted(object).(*resourceapi.ResourceClaim); is {
				h.ClaimGone(claim.UID)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch claims for which devices are held: %w", err)
	}
	return nil
}

func (h *PodHolds) observeClaim(before, after any) {
	former, isClaim := before.(*resourceapi.ResourceClaim)
	claim, is := after.(*resourceapi.ResourceClaim)
	switch {
	case !isClaim || !is:
	case claim.DeletionTimestamp != nil:
		h.ClaimGone(claim.UID)
	case former.Status.Allocation == nil && claim.Status.Allocation != nil:
		// The event may be late: the claim may have been deallocated again before its devices were held.
		if current, err := h.claims.ResourceClaims(claim.Namespace).Get(claim.Name); err == nil && current.UID == claim.UID && current.Status.Allocation != nil {
			h.Allocated(current, h.priorityOf(current))
		}
	case claim.Status.Allocation != nil && len(claim.Status.ReservedFor) < len(former.Status.ReservedFor):
		// The claim lost a user, so the preemptor may now be able to deallocate the claim.
		h.Unused(claim.UID)
	}
}

// priorityOf returns the highest priority of the pods that use a claim, or the lowest int32 if none of these pods exists.
func (h *PodHolds) priorityOf(claim *resourceapi.ResourceClaim) int32 {
	highest := int32(math.MinInt32)
	for _, user := range claim.Status.ReservedFor {
		if pod, err := h.pods.Pods(claim.Namespace).Get(user.Name); err == nil && pod.UID == user.UID {
			highest = max(highest, corev1helpers.PodPriority(pod))
		}
	}
	return highest
}

func (h *PodHolds) observe(object any) {
	pod, is := object.(*v1.Pod)
	if !is {
		return
	}
	h.Observe(pod)
	condition := hold.ConditionOf(pod)
	if condition == nil || !h.isForeign(pod) {
		// The condition of an own hold says nothing new: the hold is in memory, or TakeOver has read the condition.
		return
	}
	if condition.Status == v1.ConditionTrue {
		h.restoreFor(pod, true)
	} else if held, ok := h.Of(pod.UID); ok && held.Foreign && pod.Spec.NodeName == "" {
		h.End(pod.UID, hold.Lost)
	}
}

// deleted returns the object of a deletion event.
func deleted(object any) any {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		return unknown.Obj
	}
	return object
}

// gone returns the reason why no pods may be evicted for pod, or nil. pod is the version that the scheduler tried. The cached
// version may be bound, changed or gone by now.
func (h *PodHolds) gone(pod *v1.Pod) error {
	current, err := h.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || current.UID != pod.UID {
		return errPreemptorGone
	}
	if how, over := hold.IsOver(current, ""); over && how == hold.Deleted {
		return errPreemptorGone
	} else if over {
		return errPreemptorBound
	}
	if current.Generation != pod.Generation {
		return errPreemptorChanged
	}
	return nil
}
