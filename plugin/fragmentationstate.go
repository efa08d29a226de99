// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/structured"
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
)

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
	// environment and preparer are its own, so that what it compiles and evaluates is not taken for the
	// scheduler's. They are made when they are first needed. preparer judges selectors of claims that other
	// schedulers may have allocated.
	environment func() (*device.Environment, error)
	preparer    func() (*allocator.Preparer, error)
}

// newFragmentationMonitor is called before informers start.
func newFragmentationMonitor(handle fwk.Handle, features plfeature.Features, measured *metrics.Metrics, shared *profiles) *fragmentationMonitor {
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
		return allocator.NewPreparer(environment, selectorFeatures(features))
	})
	return &fragmentationMonitor{
		clock: clock.RealClock{}, metrics: measured, interval: shared.fragmentationInterval,
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
			allocator.WithAttemptBudget(allocator.NewAttemptBudget(fragmentation.DefaultCost, fragmentation.DefaultSteps)),
		},
	}
	return fragmentation.New(ctx, problem, s.nodes, fragmentation.Options{Stays: stays, CacheBytes: fragmentationCache})
}
