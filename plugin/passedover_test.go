// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/testing/defaults"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulerprofile "k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/ptr"
)

// narrowed is the plugin, and remembers how many nodes its PreFilter left for each pod, and which
// was taken.
type narrowed struct {
	*DynamicResourcesCEL
	mutex sync.Mutex
	left  map[string]int
	taken map[string]string
}

func (n *narrowed) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	n.mutex.Lock()
	n.taken[pod.Name] = node
	n.mutex.Unlock()
	return n.DynamicResourcesCEL.Reserve(ctx, state, pod, node)
}

func (n *narrowed) nodeOf(pod string) string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.taken[pod]
}

func (n *narrowed) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	result, status := n.DynamicResourcesCEL.PreFilter(ctx, state, pod, nodes)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.left[pod.Name] = -1
	if !result.AllNodes() {
		n.left[pod.Name] = len(result.NodeNames)
	}
	return result, status
}

// leftFor is -1 if all nodes were.
func (n *narrowed) leftFor(pod string) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.left[pod]
}

// watchScheduler runs Kubernetes' scheduler with the plugin, and watches it.
func watchScheduler(t *testing.T, client kubernetes.Interface, isFirst bool) *narrowed {
	t.Helper()
	watched := &narrowed{left: map[string]int{}, taken: map[string]string{}}
	runScheduler(t, client, isFirst, func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		pl, err := newPlugin(ctx, args, handle, features(), true, newMetrics(t), newShared())
		watched.DynamicResourcesCEL = pl
		return watched, err
	})
	return watched
}

// trial is a scheduler with a cluster on which nine nodes of ten refuse squares. Two of those are
// tainted. The others have less CPU.
type trial struct {
	*narrowed
	client kubernetes.Interface
}

const trialNodes = 100

func newTrial(t *testing.T, isFirst bool) trial {
	t.Helper()
	objects, infos := largeCluster(trialNodes)
	for i, info := range infos {
		n := info.Node()
		cpu := "8"
		switch {
		case i%10 == 0:
			cpu = "4"
		case i < 3:
			n.Spec.Taints = []v1.Taint{{Key: "example.com/reserved", Effect: v1.TaintEffectNoSchedule}}
		}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourcePods: resource.MustParse("10")}
		objects = append(objects, n)
	}
	client := fake.NewClientset(append(objects, class())...)
	return trial{watchScheduler(t, client, isFirst), client}
}

// schedule creates a pod that wants a square, and waits until it has a node or it is said why not.
func (r trial) schedule(t *testing.T, name, cpu string) (node, message string) {
	t.Helper()
	wanted := constrain(t, claim(4), "square", square)
	wanted.Name, wanted.UID = name, types.UID("claim-"+name)
	_, err := r.client.ResourceV1().ResourceClaims("default").Create(t.Context(), wanted, metav1.CreateOptions{})
	require.NoError(t, err)
	p := pod()
	p.Name, p.UID, p.Spec.SchedulerName = name, types.UID(name), "default-scheduler"
	p.Spec.ResourceClaims[0].ResourceClaimName = ptr.To(name)
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	_, err = r.client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stored, err := r.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		node = r.nodeOf(name)
		for _, c := range stored.Status.Conditions {
			message = c.Message
		}
		return node != "" || message != "" && !strings.Contains(message, "waiting for")
	}, waitFor, tick)
	return node, message
}

// Of a pod that fits nowhere the same is said whether or not its nodes were visited: how many
// refuse it for which reason, what preemption could do, and by how little it misses.
func TestSameIsSaidOfNodesThatWerePassedOver(t *testing.T) {
	r := newTrial(t, true)
	node, visited := r.schedule(t, "first", "5")
	require.Empty(t, node)
	require.Equal(t, -1, r.leftFor("first"), "nothing is known yet")
	for _, part := range []string{"0/100 nodes are available", "10 Insufficient cpu", "2 node(s) had untolerated taint", "88 ", "preemption: ", "nearest miss: "} {
		require.Contains(t, visited, part)
	}
	node, passedOver := r.schedule(t, "second", "5")
	require.Empty(t, node)
	// What tainted nodes say of devices was not found out. They are like others, though.
	require.Equal(t, trialNodes/10, r.leftFor("second"))
	require.Equal(t, visited, passedOver)
}

// A pod that fits has one of the nodes that are left.
func TestPodFitsOnANodeThatIsLeft(t *testing.T) {
	r := newTrial(t, true)
	_, _ = r.schedule(t, "first", "5")
	node, message := r.schedule(t, "fits", "1")
	require.NotEmpty(t, node, message)
	require.Equal(t, trialNodes/10, r.leftFor("fits"))
	require.True(t, strings.HasSuffix(node, "0"), node)
}

// If others are told of the nodes before our PostFilter is, all of them are visited.
func TestNothingIsPassedOverThatCouldNotBeTold(t *testing.T) {
	r := newTrial(t, false)
	_, first := r.schedule(t, "first", "5")
	_, second := r.schedule(t, "second", "5")
	require.Equal(t, first, second)
	require.Equal(t, -1, r.leftFor("second"))
}

// largeCluster has nodes with a 4x4 mesh each. Of nine out of ten, every other device is in
// use in such a manner that no two neighbours are free; of the tenth, none is.
func largeCluster(nodes int) (objects []runtime.Object, infos []fwk.NodeInfo) {
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		s := slice()
		s.Name, s.Spec.Pool.Name, s.Spec.NodeName = name, name, ptr.To(name)
		inUse := claim(8)
		inUse.Name, inUse.UID = "in-use-"+name, types.UID(name)
		inUse.Status.Allocation = &resourceapi.AllocationResult{}
		for d := range int64(16) {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{
				Name: fmt.Sprintf("mla-%d", d),
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
					"row": {IntValue: ptr.To(d / 4)}, "col": {IntValue: ptr.To(d % 4)}, "model": {StringValue: ptr.To("mla-2")},
				},
			})
			if (d/4+d%4+int64(i))%2 == 0 {
				inUse.Status.Allocation.Devices.Results = append(inUse.Status.Allocation.Devices.Results,
					resourceapi.DeviceRequestAllocationResult{Request: "mla", Driver: driver, Pool: name, Device: fmt.Sprintf("mla-%d", d)})
			}
		}
		objects = append(objects, s)
		if i%10 != 0 {
			objects = append(objects, inUse)
		}
		info := framework.NewNodeInfo()
		info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		infos = append(infos, info)
	}
	return objects, infos
}

const square = `devices.map(d, d.attributes['mla.example.com'].row).max() - devices.map(d, d.attributes['mla.example.com'].row).min() == 1 &&
	devices.map(d, d.attributes['mla.example.com'].col).max() - devices.map(d, d.attributes['mla.example.com'].col).min() == 1`

// runScheduler runs Kubernetes' scheduler until the test ends, with the plugin in the place of
// upstream's, which is the first after filters, or else the last.
func runScheduler(t *testing.T, client kubernetes.Interface, isFirst bool, newPlugin frameworkruntime.PluginFactory) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	plugins := defaults.PluginsV1.DeepCopy()
	plugins.MultiPoint.Enabled = append(slices.DeleteFunc(plugins.MultiPoint.Enabled, func(p config.Plugin) bool { return p.Name == "DynamicResources" }),
		config.Plugin{Name: Name, Weight: 2})
	if isFirst {
		plugins.PostFilter.Enabled = []config.Plugin{{Name: Name}}
	}
	informers := scheduler.NewInformerFactory(client, 0, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	s, err := scheduler.New(ctx, client, informers, nil, schedulerprofile.NewRecorderFactory(broadcaster),
		scheduler.WithProfiles(config.KubeSchedulerProfile{SchedulerName: "default-scheduler", Plugins: plugins, PluginConfig: defaults.PluginConfigsV1}),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{Name: newPlugin}))
	require.NoError(t, err)
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	require.NoError(t, s.WaitForHandlersSync(ctx))
	go s.Run(ctx)
}
