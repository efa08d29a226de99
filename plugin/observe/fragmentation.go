// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/utils/clock"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/preparation"
)

// What "kubectl celset fragmentation" says is shown as metrics, too. It is counted beside scheduling,
// and never in a scheduling cycle: no pod waits for it. Of a core it takes at most a hundredth in the
// long run, whatever there is in the cluster, and one core while it lasts.

const (
	// firstFragmentation is how long a process that begins to schedule does nothing else, at most:
	// the pods that came meanwhile are tried first.
	firstFragmentation = time.Minute
	// fragmentationTimeout is how long it may take. In 1,000 nodes it took little more than a second.
	fragmentationTimeout = 30 * time.Second
	// FragmentationRest is how much longer nothing is counted than it took to count sets of devices.
	FragmentationRest = 100
)

// fragmentationMonitor counts the sets of devices that fit.
type fragmentationMonitor struct {
	clock   clock.Clock
	metrics *metrics.Metrics
	// interval is asked for when the process schedules. 0 is for never.
	interval func() time.Duration
	// read reads what there is in the cluster, count counts in it.
	read  func(context.Context) (*fragmentationState, error)
	count func(context.Context, *fragmentationState) (*fragmentation.Report, error)
	// last is what was counted last, shown what is shown of it. nil if that is nothing.
	last  *fragmentationState
	shown *metrics.Fragmentation
}

// Run counts from when the process schedules until the context ends.
func (m *fragmentationMonitor) Run(ctx context.Context, begun <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-begun:
	}
	interval := m.interval()
	if interval == 0 {
		return
	}
	for wait := min(interval, firstFragmentation); m.sleep(ctx, wait); {
		began := m.clock.Now()
		m.look(ctx)
		wait = max(interval, FragmentationRest*m.clock.Since(began))
	}
	m.show(nil)
}

// sleep is false if the context ended before.
func (m *fragmentationMonitor) sleep(ctx context.Context, wait time.Duration) bool {
	timer := m.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return ctx.Err() == nil
	}
}

// look counts and shows what it found. After an error nothing is shown: what was true before may be
// true no more.
func (m *fragmentationMonitor) look(ctx context.Context) {
	began := m.clock.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, fragmentationTimeout, fmt.Errorf("it took longer than %s", fragmentationTimeout))
	defer cancel()
	state, err := m.read(ctx)
	if err == nil && m.shown != nil && state.equal(m.last) {
		unchanged := *m.shown
		unchanged.At = began
		m.show(&unchanged)
		m.metrics.ObserveCount(metrics.CountUnchanged)
		return
	}
	var report *fragmentation.Report
	if err == nil {
		report, err = m.guarded(ctx, state)
	}
	if err != nil {
		m.last = nil
		m.show(nil)
		if errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		m.metrics.ObserveCount(metrics.CountFailed)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		klog.FromContext(ctx).Error(err, "The sets of devices that fit could not be counted, and are not among the metrics")
		return
	}
	m.last = state
	m.show(&metrics.Fragmentation{Report: report, At: began, Took: m.clock.Since(began)})
	m.metrics.ObserveCount(outcomeOf(report))
}

func (m *fragmentationMonitor) show(found *metrics.Fragmentation) {
	m.shown = found
	m.metrics.ShowFragmentation(found)
}

// guarded counts, and returns a panic as an error: whatever goes wrong with numbers for people, the
// scheduler goes on.
func (m *fragmentationMonitor) guarded(ctx context.Context, state *fragmentationState) (report *fragmentation.Report, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v, in %s", panicked, debug.Stack())
		}
	}()
	return m.count(ctx, state)
}

func outcomeOf(report *fragmentation.Report) metrics.CountOutcome {
	if report.NotPacked != "" || slices.ContainsFunc(report.Shapes, func(s fragmentation.Shape) bool { return s.Error != "" }) {
		return metrics.CountPartial
	}
	return metrics.CountComplete
}

// fragmentationCache is the memory for what is found out while sets are counted. It is free again
// afterwards.
const fragmentationCache = 64 << 20

// fragmentationState is what a report depends on: nodes where pods may go, pods that wait, claims, classes and
// slices, by name. Nothing of it is modified.
type fragmentationState struct {
	nodes []*v1.Node
	// waiting are pods that ask for extended resources which a class stands for, and have no claim yet.
	waiting []*v1.Pod
	claims  []*resourceapi.ResourceClaim
	classes []*resourceapi.DeviceClass
	slices  []*resourceapi.ResourceSlice
}

// equal tells whether a report on the other state would say the same. What did not change is the same
// object in the caches of informers. Of a pod that waits only the condition changes. Nodes change every few minutes, because the kubelet says that it
// is alive, and only their names and labels matter.
func (s *fragmentationState) equal(other *fragmentationState) bool {
	return other != nil && slices.EqualFunc(s.waiting, other.waiting, func(a, b *v1.Pod) bool { return a.UID == b.UID }) && slices.Equal(s.claims, other.claims) && slices.Equal(s.classes, other.classes) && slices.Equal(s.slices, other.slices) &&
		slices.EqualFunc(s.nodes, other.nodes, func(a, b *v1.Node) bool { return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) })
}

// fragmentationSource reads the informers' caches. It does not look at the scheduler's snapshot, which
// changes with each cycle.
type fragmentationSource struct {
	nodes    corelisters.NodeLister
	pods     corelisters.PodLister
	manager  fwk.SharedDRAManager
	features structured.Features
	// extended: pods that ask for extended resources get claims.
	extended bool
	synced   []cache.InformerSynced
	// Environment and preparer are its own, so that what it compiles and evaluates is not taken for the
	// scheduler's. They are made when they are first needed. preparer judges selectors of claims that other
	// schedulers may have allocated.
	environment func() (*device.Environment, error)
	preparer    func() (*allocator.Preparer, error)
}

// NewFragmentationMonitor is called before informers start.
func NewFragmentationMonitor(handle fwk.Handle, features plfeature.Features, measured *metrics.Metrics, interval func() time.Duration) *fragmentationMonitor {
	factory := handle.SharedInformerFactory()
	source := &fragmentationSource{
		nodes:    factory.Core().V1().Nodes().Lister(),
		pods:     factory.Core().V1().Pods().Lister(),
		manager:  handle.SharedDRAManager(),
		features: dynamicresources.AllocatorFeatures(features),
		extended: features.EnableDRAExtendedResource,
		synced: []cache.InformerSynced{
			factory.Core().V1().Nodes().Informer().HasSynced,
			factory.Core().V1().Pods().Informer().HasSynced,
			factory.Resource().V1().ResourceClaims().Informer().HasSynced,
			factory.Resource().V1().ResourceSlices().Informer().HasSynced,
			factory.Resource().V1().DeviceClasses().Informer().HasSynced,
		},
		environment: sync.OnceValues(func() (*device.Environment, error) { return device.NewEnvironment(cel.Config{}) }),
	}
	source.preparer = sync.OnceValues(func() (*allocator.Preparer, error) {
		environment, err := source.environment()
		if err != nil {
			return nil, err
		}
		return allocator.NewPreparer(environment, preparation.SelectorFeatures(features))
	})
	return &fragmentationMonitor{
		clock: clock.RealClock{}, metrics: measured, interval: interval,
		read: source.read, count: source.count,
	}
}

// read returns what there is now.
func (f *fragmentationSource) read(ctx context.Context) (*fragmentationState, error) {
	if !cache.WaitForCacheSync(ctx.Done(), f.synced...) {
		return nil, errors.New("the informers have not synced")
	}
	all, err := f.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	s := &fragmentationState{}
	for _, node := range all {
		// As the command does: nobody goes there.
		if !node.Spec.Unschedulable {
			s.nodes = append(s.nodes, node)
		}
	}
	if f.extended {
		pods, err := f.pods.List(labels.Everything())
		if err != nil {
			return nil, err
		}
		s.waiting = byName(slices.DeleteFunc(pods, func(pod *v1.Pod) bool { return !extended.Waits(pod) || len(extended.Resources(pod, f.classOf)) == 0 }))
	}
	if s.claims, err = f.manager.ResourceClaims().List(); err != nil {
		return nil, err
	}
	if s.classes, err = f.manager.DeviceClasses().List(); err != nil {
		return nil, err
	}
	if s.slices, err = f.manager.ResourceSlices().ListWithDeviceTaintRules(); err != nil {
		return nil, err
	}
	s.nodes, s.claims, s.classes, s.slices = byName(s.nodes), byName(s.claims), byName(s.classes), byName(s.slices)
	return s, nil
}

// classOf is the class that stands for an extended resource.
func (f *fragmentationSource) classOf(name v1.ResourceName) *resourceapi.DeviceClass {
	return f.manager.DeviceClassResolver().GetDeviceClass(name)
}

// byName has objects in an order that does not depend on the informers.
func byName[T metav1.Object](objects []T) []T {
	return slices.SortedFunc(slices.Values(objects), func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// count makes the report on a state. A claim stays where it is if the plugin would refuse its
// selectors: upstream's evaluator, which can't be stopped, is to see them here as little as in a
// scheduling cycle.
func (f *fragmentationSource) count(ctx context.Context, s *fragmentationState) (*fragmentation.Report, error) {
	environment, err := f.environment()
	if err != nil {
		return nil, err
	}
	preparer, err := f.preparer()
	if err != nil {
		return nil, err
	}
	stays := func(claim *resourceapi.ResourceClaim) bool {
		prepared, err := preparer.Prepare(fairness.WithTenant(ctx, claim.Namespace), claim, f.manager.DeviceClasses(), false)
		return err != nil || prepared.Err() != nil
	}
	problem := allocator.Problem{
		Allocated: append(slices.Clone(s.claims), extended.Waiting(s.waiting, f.classOf)...), Slices: s.slices, Classes: f.manager.DeviceClasses(), Features: f.features, Selectors: preparer.Selectors(),
		Options: []allocator.Option{
			allocator.WithEnvironment(environment),
			allocator.WithAttemptBudget(fragmentation.NewBudget()),
		},
	}
	return fragmentation.New(ctx, problem, s.nodes, fragmentation.Options{Usual: true, Stays: stays, CacheBytes: fragmentationCache})
}
