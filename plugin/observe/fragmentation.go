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

// The monitor exports the numbers of "kubectl celset fragmentation" as metrics. It counts outside of scheduling cycles, so no
// pod waits for a count. A count uses one core. In the long run the monitor uses at most a hundredth of a core, however large
// the cluster.

const (
	// firstFragmentation is the maximum delay of the first count after the process begins to schedule. Pods that have queued up
	// are tried first.
	firstFragmentation = time.Minute
	// fragmentationTimeout is the timeout of one count. A count of 1,000 nodes took little more than a second.
	fragmentationTimeout = 30 * time.Second
	// FragmentationRest is the minimum pause after a count, as a multiple of the count's duration.
	FragmentationRest = 100
)

// fragmentationMonitor counts the free sets of devices at intervals, and exports the counts.
type fragmentationMonitor struct {
	clock   clock.Clock
	metrics *metrics.Metrics
	// interval returns the time between two counts. 0 turns the monitor off. It is called when the process begins to schedule.
	interval func() time.Duration
	// read returns the state of the cluster. count counts the free sets in a state.
	read  func(context.Context) (*fragmentationState, error)
	count func(context.Context, *fragmentationState) (*fragmentation.Report, error)
	// last is the state of the last count. shown is the exported result of that count. Both are nil after an error.
	last  *fragmentationState
	shown *metrics.Fragmentation
}

// Run counts free sets until ctx is done. It begins when started is closed, which happens when the process begins to schedule.
func (m *fragmentationMonitor) Run(ctx context.Context, started <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-started:
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

// sleep waits for the given time. It returns false if ctx is done first.
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

// look counts once and exports the result. After an error it exports no counts, because the previous counts may be wrong by
// now.
func (m *fragmentationMonitor) look(ctx context.Context) {
	began := m.clock.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, fragmentationTimeout, fmt.Errorf("the work took longer than %s", fragmentationTimeout))
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
		klog.FromContext(ctx).Error(err, "Could not count the sets of devices that fit; the metrics don't contain them")
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

// guarded counts the free sets of a state. It returns a panic as an error, because a bug in these statistics must not stop the
// scheduler.
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

// fragmentationCache is the size in bytes of the cache that one count uses. The cache is dropped after the count.
const fragmentationCache = 64 << 20

// fragmentationState holds the objects that a count depends on, sorted by name. nodes has only schedulable nodes. The objects
// must not be modified.
type fragmentationState struct {
	nodes []*v1.Node
	// waiting holds the pods that request extended resources of a class and have no claim for them yet.
	waiting []*v1.Pod
	claims  []*resourceapi.ResourceClaim
	classes []*resourceapi.DeviceClass
	slices  []*resourceapi.ResourceSlice
}

// equal reports whether other gives the same counts. In informer caches, an object that did not change has the same pointer.
// Waiting pods are compared by UID, because only their conditions change. Nodes are compared by name and labels, because the
// kubelet's heartbeat changes each node every few minutes.
func (s *fragmentationState) equal(other *fragmentationState) bool {
	return other != nil && slices.EqualFunc(s.waiting, other.waiting, func(a, b *v1.Pod) bool { return a.UID == b.UID }) && slices.Equal(s.claims, other.claims) && slices.Equal(s.classes, other.classes) && slices.Equal(s.slices, other.slices) &&
		slices.EqualFunc(s.nodes, other.nodes, func(a, b *v1.Node) bool { return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) })
}

// fragmentationSource reads the state of the cluster from informers' caches. The scheduler's snapshot changes with each cycle,
// so it can't be read in the background.
type fragmentationSource struct {
	nodes    corelisters.NodeLister
	pods     corelisters.PodLister
	manager  fwk.SharedDRAManager
	features structured.Features
	// extended is set if the scheduler makes claims for pods with extended resources.
	extended bool
	synced   []cache.InformerSynced
	// environment and preparer are not shared with the scheduler, so that the monitor's work doesn't count in the scheduler's
	// metrics. They are created on first use. preparer checks selectors again, because another scheduler may have allocated a
	// claim without this check.
	environment func() (*device.Environment, error)
	preparer    func() (*allocator.Preparer, error)
}

// NewFragmentationMonitor returns a monitor that reads the lists of a manager. It must be called before informers start.
func NewFragmentationMonitor(handle fwk.Handle, manager fwk.SharedDRAManager, features plfeature.Features, measured *metrics.Metrics, interval func() time.Duration) *fragmentationMonitor {
	factory := handle.SharedInformerFactory()
	source := &fragmentationSource{
		nodes:    factory.Core().V1().Nodes().Lister(),
		pods:     factory.Core().V1().Pods().Lister(),
		manager:  manager,
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

// read returns the current state of the cluster from the informers.
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
		// Skip unschedulable nodes, as "kubectl celset fragmentation" does.
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

// classOf returns the DeviceClass that provides an extended resource.
func (f *fragmentationSource) classOf(name v1.ResourceName) *resourceapi.DeviceClass {
	return f.manager.DeviceClassResolver().GetDeviceClass(name)
}

// byName sorts objects by namespace and name, because informers return them in random order.
func byName[T metav1.Object](objects []T) []T {
	return slices.SortedFunc(slices.Values(objects), func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// count counts the free sets of a state. To compute a better packing, it moves claims to other devices. It doesn't move a claim
// whose selectors the plugin would refuse: upstream's evaluator can't be interrupted, so it must not evaluate such selectors.
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
