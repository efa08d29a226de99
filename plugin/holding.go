// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/plugin/hold"
)

// What is held for other pods counts as in use from the beginning of a scheduling cycle, for upstream's
// allocator and for ours, in every trial, and in profiles that preempt for nobody, too. So no filter has
// to know of it.

// maxNamedNodes is how many nodes are named in a message.
const maxNamedNodes = 5

// keptFrom is what a pod may not take though no claim has it: what is held for others, and what the pending writes of
// others may have given them.
func (pl *DynamicResourcesCEL) keptFrom(pod *v1.Pod, c *podClaims) []resourceapi.DeviceRequestAllocationResult {
	var kept []resourceapi.DeviceRequestAllocationResult
	if pl.writes != nil {
		kept = pl.writes.InUse(pod, c.own(), pl.activate)
	}
	if pl.holds != nil {
		for _, hold := range pl.holds.From(pod, pl.activate) {
			kept = append(kept, hold.Devices...)
		}
	}
	return kept
}

// keptTexts say what was kept from a pod that fits nowhere and might have had it.
func (pl *DynamicResourcesCEL) keptTexts(pod *v1.Pod, c *podClaims) (texts []string) {
	var nodes []string
	held := 0
	if pl.holds != nil {
		for _, hold := range pl.holds.From(pod, pl.activate) {
			nodes = append(nodes, hold.Node)
			held += len(hold.Devices)
		}
	}
	if held > 0 {
		slices.Sort(nodes)
		nodes = slices.Compact(nodes)
		where := strings.Join(nodes, ", ")
		if len(nodes) > maxNamedNodes {
			where = fmt.Sprintf("%s and %d other nodes", strings.Join(nodes[:maxNamedNodes], ", "), len(nodes)-maxNamedNodes)
		}
		texts = append(texts, fmt.Sprintf("%d devices of %s are held for pods of the same or a higher priority for which others were evicted", held, where))
	}
	if pl.writes != nil {
		if pending := len(pl.writes.InUse(pod, c.own(), pl.activate)); pending > 0 {
			texts = append(texts, fmt.Sprintf("%d devices are kept until it is known whether claims have them, of which the API server or the watch has not told yet", pending))
		}
	}
	return texts
}

// taken breaks the holds on what was just reserved for a pod.
func (pl *DynamicResourcesCEL) taken(pod *v1.Pod) {
	if pl.holds == nil || pl.holds.Count() == 0 {
		return
	}
	var devices []structured.DeviceID
	for _, claim := range pl.claimsOf(pod) {
		if pending := pl.claims.ResourceClaims().GetPendingAllocation(claim.UID); pending != nil {
			devices = append(devices, preemption.DevicesOf(pending.Devices.Results)...)
		}
	}
	pl.holds.Taken(pod, devices)
}

// watchHolds has holds end with what becomes of their pods.
func watchHolds(factory informers.SharedInformerFactory, holds *hold.Holds) error {
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, _ := before.(*v1.Pod)
			if pod, is := after.(*v1.Pod); is {
				holds.Observe(old, pod)
			}
		},
		DeleteFunc: func(object any) {
			if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
				object = unknown.Obj
			}
			if pod, is := object.(*v1.Pod); is {
				holds.End(pod.UID, hold.Deleted)
			}
		},
	})
	return err
}

// noUseToWait tells why a pod that does not fit on the node where devices are held for it need not wait for
// them, empty if it has to. Between the end of a victim and the deallocation of its claim nothing on the
// node says that somebody was evicted: who is tried then would have others evicted elsewhere. If all is free by now it is tried again, once.
func (p *preempter) noUseToWait(held hold.Hold, refused *fwk.Status) string {
	if refused.Plugin() != Name {
		return "the node refuses it for another reason: " + refused.Message()
	}
	user, inUse := p.userOf(held)
	switch {
	case user != "":
		return user
	case inUse:
		return ""
	case !p.holds.NoteFree(held.Pod.UID):
		// They were given back while the filters ran.
		p.pl.activate(held.Pod)
		return ""
	default:
		return "they are free, and the node refuses it: " + refused.Message()
	}
}

// userOf tells who has held devices and is not about to give them back, empty if nobody is. inUse is
// whether anybody has one.
func (p *preempter) userOf(held hold.Hold) (user string, inUse bool) {
	claims, err := p.pl.claims.ResourceClaims().List()
	if err != nil {
		return err.Error(), false
	}
	wanted := sets.New(preemption.DevicesOf(held.Devices)...)
	pods := p.pl.handle.SharedInformerFactory().Core().V1().Pods().Lister()
	for _, claim := range claims {
		if claim.Status.Allocation == nil || !wanted.HasAny(preemption.DevicesOf(claim.Status.Allocation.Devices.Results)...) {
			continue
		}
		inUse = true
		for _, user := range claim.Status.ReservedFor {
			pod, err := pods.Pods(claim.Namespace).Get(user.Name)
			switch {
			case !preemption.IsPod(user):
				return fmt.Sprintf("%s %s has some of them", user.Resource, klog.KRef(claim.Namespace, user.Name)), true
			case err == nil && pod.UID == user.UID && pod.DeletionTimestamp == nil && !p.holds.IsVictim(held.Pod.UID, pod.UID):
				return fmt.Sprintf("pod %s has some of them", klog.KObj(pod)), true
			}
		}
	}
	return "", inUse
}

// activateHolder has a pod tried at once when all is free that is held for it. Upstream has it tried when
// a claim is deallocated, after its back-off.
func (pl *DynamicResourcesCEL) activateHolder(pod *v1.Pod) {
	if pl.holds == nil {
		return
	}
	held, ok := pl.holds.Of(pod.UID)
	if !ok {
		return
	}
	// Who calls has a lock of the queue.
	go func() {
		inUse, err := pl.claims.ResourceClaims().ListAllAllocatedDevices()
		if err == nil && !inUse.HasAny(preemption.DevicesOf(held.Devices)...) {
			pl.activate(held.Pod)
		}
	}()
}

// queueHolder wraps upstream's hint about claims.
func (pl *DynamicResourcesCEL) queueHolder(upstream fwk.QueueingHintFn) fwk.QueueingHintFn {
	return func(logger klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
		hint, err := upstream(logger, pod, oldObj, newObj)
		if hint == fwk.Queue && freesDevices(oldObj, newObj) {
			pl.activateHolder(pod)
		}
		return hint, err
	}
}

// freesDevices tells whether a claim has lost its allocation, or is gone.
func freesDevices(before, after any) bool {
	old, is := before.(*resourceapi.ResourceClaim)
	if !is || old.Status.Allocation == nil {
		return false
	}
	claim, is := after.(*resourceapi.ResourceClaim)
	return !is || claim.Status.Allocation == nil
}

// prepareAtStart is how long a scheduler that starts compiles at most what nominated pods ask for, and
// finds out what was held for them, before it tries the first pod.
const prepareAtStart = 5 * time.Second

// resume holds again what an earlier process held: for the pods that are nominated to a node, what they
// would get there when the pods of a lower priority are gone that are ending there. It is done once,
// before the first pod is tried.
func (p *preempter) resume(ctx context.Context) {
	logger := klog.FromContext(ctx)
	all, err := p.pl.handle.SharedInformerFactory().Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		logger.Error(err, "It is not known for which pods devices were held")
		return
	}
	nominated := slices.DeleteFunc(slices.Clone(all), func(pod *v1.Pod) bool {
		return !preemption.IsNominated(pod) || pod.Spec.SchedulerName != p.pl.handle.ProfileName()
	})
	slices.SortFunc(nominated, preemption.CompareNominated)
	// One for all: no pod is tried meanwhile, however many are nominated.
	budget := p.pl.newBudget()
	// Nothing was prepared yet, and it can't be waited for: other pods would get what was held.
	ctx, cancel := context.WithTimeout(ctx, prepareAtStart)
	defer cancel()
	for _, pod := range nominated {
		if err := p.resumeFor(ctx, pod, budget); err != nil {
			logger.Info("Nothing is held for a nominated pod", "pod", klog.KObj(pod), "node", klog.KRef("", pod.Status.NominatedNodeName), "why", err.Error())
		}
	}
}

func (p *preempter) resumeFor(ctx context.Context, pod *v1.Pod, budget *allocator.AttemptBudget) error {
	c := p.pl.resolve(pod)
	claims := c.all()
	if c.err != nil || len(claims) == 0 {
		return c.err
	}
	info, err := p.pl.handle.SnapshotSharedLister().NodeInfos().Get(pod.Status.NominatedNodeName)
	if err != nil {
		return err
	}
	if err := p.pl.preparing.prepareNow(ctx, claims, p.pl.constrains()); err != nil {
		return err
	}
	trial, err := p.pl.newTrial(ctx, pod, c, budget)
	if err != nil {
		return err
	}
	s := &simulation{preemptionTrial: trial, removed: map[types.UID]*v1.Pod{}}
	var victims []types.UID
	grace := metav1.Duration{}
	for _, on := range info.GetPods() {
		if ending := on.GetPod(); preemption.MakesRoom(ending, pod) {
			s.removed[ending.UID] = ending
			victims = append(victims, ending.UID)
			grace.Duration = max(grace.Duration, gracePeriod(ending))
		}
	}
	results, err := s.allocate(ctx, info.Node(), claims)
	if err != nil {
		return err
	}
	held := hold.Hold{Pod: pod, Node: info.Node().Name, Victims: victims, Timeout: p.args.HoldTimeout.Duration + grace.Duration}
	for i := range results {
		held.Devices = append(held.Devices, results[i].Devices.Results...)
	}
	if len(held.Devices) == 0 {
		return nil
	}
	p.holds.Keep(held)
	klog.FromContext(ctx).Info("Devices are held again for a nominated pod", "pod", klog.KObj(pod), "node", klog.KRef("", held.Node), "devices", namesOf(held.Devices))
	return nil
}

// namesOf are the devices without driver and pool.
func namesOf(results []resourceapi.DeviceRequestAllocationResult) string {
	names := make([]string, len(results))
	for i := range results {
		names[i] = results[i].Device
	}
	return strings.Join(names, ", ")
}
