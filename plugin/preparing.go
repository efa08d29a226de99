// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/allocator/podclaims"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/cel/memo"
)

// What claims say is compiled in the background, when a pod that needs them is queued: one claim of each
// namespace at a time, and one expression at a time in turns of namespaces. The pod stays gated until that
// is done. If it takes long, the pod is let through once, to be refused with a reason that users see. A
// scheduling cycle looks up what was prepared, and compiles nothing that tenants write.

// preparedBytes bounds what is kept. A claim with usual expressions takes some 10 KiB.
const preparedBytes = 128 << 20

// preparing is for all profiles of a scheduler. It is safe for concurrent use.
type preparing struct {
	*allocator.Preparer
	// environment is that of constraints.
	environment *device.Environment
	claims      claimGetter
	classes     fwk.DeviceClassLister
	memory      *memo.Memory
	known       *memo.Memo[preparedKey, *allocator.PreparedClaim]
	contents    *memo.Memo[versionsKey, content]
	// background is nil where claims are prepared when they are needed, as in a simulation.
	background *fairness.Background[wanted]

	// mutex guards what follows.
	mutex sync.Mutex
	// waiting has the pods that are activated when a claim was prepared.
	waiting map[wanted]map[types.UID]waitingPod
	// generation is that of the selectors of what is kept.
	generation uint64
}

// waitingPod has what the queue knows a pod by. Pods and claims that are gone are not kept until their turn comes.
type waitingPod struct {
	*v1.Pod
	activate func(*v1.Pod)
}

func waiter(pod *v1.Pod, activate func(*v1.Pod)) waitingPod {
	return waitingPod{&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Spec:       v1.PodSpec{SchedulingGroup: pod.Spec.SchedulingGroup},
	}, activate}
}

// versionsKey is all that the content of a claim depends on: its specification never changes.
type versionsKey struct {
	claim types.UID
	// classes are the versions of those that the claim uses.
	classes string
}

// content is what a claim has in common with others, such as those of a template. ok: it is known.
type content struct {
	allocator.Content
	ok bool
}

// preparedKey is all that what is prepared depends on.
type preparedKey struct {
	// content is nothing for claims that stand for themselves, own for those that don't.
	content allocator.Content
	own     versionsKey
	// selectors are those of the Preparer.
	selectors uint64
	// constraints: its constraints and preferences were compiled, too.
	constraints bool
}

// wanted is what has to be prepared.
type wanted struct {
	claim       types.UID
	constraints bool
}

// claimGetter has the claims that are prepared.
type claimGetter interface {
	Get(namespace, name string) (*resourceapi.ResourceClaim, error)
}

func newPreparing(features plfeature.Features, manager fwk.SharedDRAManager, observer cel.Observer) (*preparing, error) {
	environment, err := device.NewEnvironment(cel.Config{Observer: observer})
	if err != nil {
		return nil, err
	}
	preparer, err := allocator.NewPreparer(environment, selectorFeatures(features))
	if err != nil {
		return nil, err
	}
	return newPreparingOf(preparer, environment, latest{manager}, latestClasses{manager}, preparedBytes), nil
}

// latest and latestClasses ask the manager for its lists at each use: that of an autoscaler has others in each loop, and none yet
// when the plugin is made.
type (
	latest        struct{ manager fwk.SharedDRAManager }
	latestClasses struct{ manager fwk.SharedDRAManager }
)

func (l latest) Get(namespace, name string) (*resourceapi.ResourceClaim, error) {
	return l.manager.ResourceClaims().Get(namespace, name)
}

func (l latest) List() ([]*resourceapi.ResourceClaim, error) {
	return l.manager.ResourceClaims().List()
}

func (l latestClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	return l.manager.DeviceClasses().Get(name)
}

func (l latestClasses) List() ([]*resourceapi.DeviceClass, error) {
	return l.manager.DeviceClasses().List()
}

func newPreparingOf(preparer *allocator.Preparer, environment *device.Environment, claims claimGetter, classes fwk.DeviceClassLister, bytes int64) *preparing {
	memory := memo.New(bytes)
	return &preparing{
		memory: memory, Preparer: preparer, environment: environment, claims: claims, classes: classes,
		known: memo.In(memory, func(key preparedKey, c **allocator.PreparedClaim) memo.Size {
			size := (*c).Size()
			size.Bytes += len(key.own.classes)
			return size
		}),
		contents: memo.In(memory, func(key versionsKey, _ *content) memo.Size { return memo.Size{Bytes: 256 + len(key.classes)} }),
		waiting:  map[wanted]map[types.UID]waitingPod{},
	}
}

func selectorFeatures(features plfeature.Features) dracel.Features {
	return dracel.Features{
		EnableConsumableCapacity: features.EnableDRAConsumableCapacity,
		EnableListTypeAttributes: features.EnableDRAListTypeAttributes,
	}
}

// prepared are the claims of a pod that need it. missing are those that have to be waited for.
func (p *preparing) prepared(ctx context.Context, claims []*resourceapi.ResourceClaim, constraints bool) (prepared allocator.Prepared, missing []*resourceapi.ResourceClaim, err error) {
	// Each class is read once: what is used together was prepared with the same.
	versions := map[string]string{}
	version := func(name string) string {
		read, known := versions[name]
		if !known {
			read = p.version(name)
			versions[name] = read
		}
		return read
	}
	for _, claim := range claims {
		if !allocator.NeedsPreparation(claim, constraints) {
			continue
		}
		c := p.look(claim, version, constraints)
		if c == nil && p.background == nil {
			if c, err = p.prepare(ctx, claim, constraints); err != nil {
				return nil, nil, err
			}
		}
		if c == nil {
			missing = append(missing, claim)
			continue
		}
		if prepared == nil {
			prepared = allocator.Prepared{}
		}
		prepared[claim.UID] = c
	}
	return prepared, missing, nil
}

func (p *preparing) version(class string) string {
	return allocator.VersionOf(p.classes.Get(class))
}

// look returns what was prepared of the claim, or of one that asks for the same.
func (p *preparing) look(claim *resourceapi.ResourceClaim, version func(class string) string, constraints bool) *allocator.PreparedClaim {
	versions := versionsKey{claim.UID, allocator.ClassVersions(claim, version)}
	keys := []preparedKey{{own: versions, selectors: p.Generation(), constraints: constraints}}
	common := p.contents.Get(versions, func() content { return newContent(claim, p.classes) })
	if common.ok {
		keys = append(keys, preparedKey{content: common.Content, selectors: p.Generation(), constraints: constraints})
	}
	for _, key := range keys {
		if entry := p.known.Has(key); entry != nil {
			if c := entry.Look(); c != nil {
				return *c
			}
		}
	}
	return nil
}

func newContent(claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister) content {
	sum, ok := allocator.ContentOf(claim, classes)
	return content{sum, ok}
}

// contentOf is what a claim of the API has in common with others, found out once.
func (p *preparing) contentOf(claim *resourceapi.ResourceClaim, classes fwk.DeviceClassLister) content {
	versions := versionsKey{claim.UID, allocator.ClassVersions(claim, func(name string) string { return allocator.VersionOf(classes.Get(name)) })}
	return p.contents.Get(versions, func() content { return newContent(claim, classes) })
}

func (p *preparing) prepare(ctx context.Context, claim *resourceapi.ResourceClaim, constraints bool) (*allocator.PreparedClaim, error) {
	c, err := p.Prepare(ctx, claim, p.classes, constraints)
	if err != nil {
		return nil, fmt.Errorf("prepare claim %s: %w", klog.KObj(claim), err)
	}
	if constraints {
		// Mistakes are those that the claim has already.
		if err := explain.Prepare(ctx, p.environment, claim, p.classes); ctx.Err() != nil {
			return nil, err
		}
	}
	if p.isCurrent(c) {
		key := preparedKey{selectors: c.Generation(), constraints: constraints}
		if sum, ok := c.Content(); ok && c.IsFlawless() {
			key.content = sum
		} else {
			key.own = versionsKey{claim.UID, allocator.ClassVersions(claim, c.ClassVersion)}
		}
		c, _, err = p.known.At(key).Find(ctx, func() (*allocator.PreparedClaim, error) { return c, nil })
	}
	return c, err
}

// isCurrent reports whether a claim is worth being kept. When there is a new generation of selectors all that is of
// the former is dropped: it would keep those selectors in memory.
func (p *preparing) isCurrent(c *allocator.PreparedClaim) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if now := p.Generation(); now != p.generation {
		p.generation = now
		p.memory.Forget()
	}
	return c.Generation() == p.generation
}

// await has the claims prepared, and the pod activated then.
func (p *preparing) await(pod *v1.Pod, missing []*resourceapi.ResourceClaim, constraints bool, activate func(*v1.Pod)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	// The claims of a namespace are prepared one after the other: when the last one is, all are.
	last := wanted{missing[len(missing)-1].UID, constraints}
	if p.waiting[last] == nil {
		p.waiting[last] = map[types.UID]waitingPod{}
	}
	p.waiting[last][pod.UID] = waiter(pod, activate)
	for _, claim := range missing {
		namespace, name, want := claim.Namespace, claim.Name, wanted{claim.UID, constraints}
		p.background.Add(namespace, want, func(ctx context.Context) { p.prepareWanted(ctx, namespace, name, want) }, func() { p.wake(want) })
	}
}

// prepareWanted prepares a claim if it is still there.
func (p *preparing) prepareWanted(ctx context.Context, namespace, name string, want wanted) {
	claim, err := p.claims.Get(namespace, name)
	if err != nil || claim.UID != want.claim || p.look(claim, p.version, want.constraints) != nil {
		return
	}
	if _, err := p.prepare(ctx, claim, want.constraints); err != nil {
		klog.FromContext(ctx).V(4).Info("Not prepared", "err", err)
	}
}

// wake activates the pods that wait for a claim.
func (p *preparing) wake(claim wanted) {
	p.mutex.Lock()
	pods := p.waiting[claim]
	delete(p.waiting, claim)
	p.mutex.Unlock()
	for _, pod := range pods {
		pod.activate(pod.Pod)
	}
}

// errNotPrepared ends what would have to compile something within a scheduling cycle.
var errNotPrepared = errors.New("the expressions of a claim are being compiled")

// PreEnqueue gates a pod while others are being evicted for it, while upstream's PreEnqueue gates it because it can't use its
// claims, until its claims are prepared, and until the guard would not refuse it. It is called while the scheduling queue is locked, so it only looks up.
func (pl *DynamicResourcesCEL) PreEnqueue(ctx context.Context, pod *v1.Pod) *fwk.Status {
	if pl.isPreempting(pod) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "pods are being evicted for the pod's devices")
	}
	status := pl.DynamicResources.PreEnqueue(ctx, pod)
	if pl.preparing == nil || pl.preparing.background == nil {
		return status
	}
	if !status.IsSuccess() {
		// PreFilter refuses the pod with the same reason, which an attempt writes.
		if pl.guard.Tell(pod, status.Message(), pl.activate) {
			return nil
		}
		return status
	}
	wantsExtended := pl.wantsExtended(pod)
	if len(pod.Spec.ResourceClaims) == 0 && !wantsExtended {
		return nil
	}
	c := pl.resolve(pod)
	if c.err != nil || podclaims.Bounded(c.unallocated) != nil || len(c.unallocated) == 0 && !wantsExtended {
		// PreFilter says what is wrong. Nothing is refused that is to be bound only.
		return status
	}
	_, missing, err := pl.preparing.prepared(ctx, c.unallocated, pl.constrains())
	if err != nil {
		return status
	}
	if len(missing) > 0 {
		pl.preparing.await(pod, missing, pl.constrains(), pl.activate)
		if why := unprepared(missing); !pl.guard.Tell(pod, why, pl.activate) {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
		}
	}
	return pl.gate(pod, c)
}

// gate has a pod wait outside of the queue if it would be refused now.
func (pl *DynamicResourcesCEL) gate(pod *v1.Pod, c *podClaims) *fwk.Status {
	if pl.guard.Gate(pl.requestOf(pod, c)) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod waits for the scheduler's time: the claims back off, or other pods of the namespace go first")
	}
	return nil
}

// constrains reports whether constraints and preferences of claims matter in this profile.
func (pl *DynamicResourcesCEL) constrains() bool {
	return pl.enabled && pl.mode != configv1alpha1.AllocatorUpstream
}

// unprepared is why a pod has to wait.
func unprepared(missing []*resourceapi.ResourceClaim) string {
	if more := len(missing) - 1; more > 0 {
		return fmt.Sprintf("the expressions of claim %s and of %d others are being compiled: the pod is tried when that is done", klog.KObj(missing[0]), more)
	}
	return fmt.Sprintf("the expressions of claim %s are being compiled: the pod is tried when that is done", klog.KObj(missing[0]))
}
