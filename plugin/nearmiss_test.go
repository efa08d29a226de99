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

// nodes is the part of a snapshot that the plugin reads.
type nodes struct {
	fwk.NodeInfoLister
	all []fwk.NodeInfo
}

func (n nodes) List() ([]fwk.NodeInfo, error) { return n.all, nil }

func (n nodes) Get(name string) (fwk.NodeInfo, error) {
	for _, info := range n.all {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, fmt.Errorf("no node %s", name)
}

// owned returns a claim to which the devices with the given indices are allocated.
func owned(name string, indices ...int64) *resourceapi.ResourceClaim {
	c := claim(int64(len(indices)))
	c.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-" + c.UID}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for _, index := range indices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "mla", Driver: driver, Pool: nodeName, Device: deviceName(index)})
	}
	return c
}

// fail runs a scheduling cycle where no node fits, and returns PostFilter's status.
func fail(ctx context.Context, t *testing.T, pl *DynamicResourcesCEL, names ...string) *fwk.Status {
	t.Helper()
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	var all []fwk.NodeInfo
	statuses := map[string]*fwk.Status{}
	for _, name := range names {
		info := node(name)
		all = append(all, info)
		status := pl.Filter(ctx, state, pod(), info)
		require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code(), name)
		status.SetPlugin(Name)
		statuses[name] = status
	}
	elsewhere := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "too little memory")
	elsewhere.SetPlugin("NodeResourcesFit")
	statuses["full"] = elsewhere
	pl.misses.Nodes = func() fwk.NodeInfoLister { return nodes{all: append(all, node("full"))} }
	_, status = pl.PostFilter(ctx, state, pod(), framework.NewNodeToStatus(statuses, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)))
	require.Equal(t, fwk.Unschedulable, status.Code())
	return status
}

// TestClaimsOfOtherNamespacesAreNotNamed: users who may read the pod, its conditions and events may not be allowed to read
// claims of other namespaces.
func TestClaimsOfOtherNamespacesAreNotNamed(t *testing.T) {
	other, another := owned("secret", 0), owned("secret", 1)
	other.Namespace, another.Namespace, another.UID = "hidden", "concealed", "another"
	ctx, pl := start(t, true, class(), slice(0, 1, 3, 4), other, another, constrain(t, claim(4), "any", "true"))
	require.Equal(t, "nearest miss: node node-1: request mla: too few matching devices are free (4 requested, 4 match, 2 free); in the way: 2 claims of other namespaces with mla-0, mla-1",
		fail(ctx, t, pl, nodeName).Message())
}

// TestNothingIsSaidOfPendingAllocations checks that no message names devices in flight: no claim shows them yet. The pod would
// fit without the pending allocation, and is retried when the allocation is written.
func TestNothingIsSaidOfPendingAllocations(t *testing.T) {
	other, pending := owned("other", 0), owned("other", 0)
	other.Status.Allocation = nil
	ctx, pl := start(t, true, class(), slice(0, 1), other, constrain(t, claim(2), "any", "true"))
	require.NoError(t, pl.resolver.Manager.ResourceClaims().SignalClaimPendingAllocation(pending.UID, pending))
	require.Empty(t, fail(ctx, t, pl, nodeName).Message())
}

// TestNearestMissLooksAtSomeNodes checks that the nearest miss is searched on a bounded number of nodes. The last node is
// nearer, but the message names the first one.
func TestNearestMissLooksAtSomeNodes(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0), constrain(t, claim(2), "any", "true"))
	const many = 100 // more than nearMissNodes
	names := make([]string, 0, many+1)
	for i := range many {
		names = append(names, fmt.Sprintf("far-%03d", i))
	}
	require.Contains(t, fail(ctx, t, pl, append(names, nodeName)...).Message(), "nearest miss: node far-000: request mla: too few matching devices are free (2 requested, 0 match, 0 free)")
}

// TestTaintedDevicesAreNearer checks that a node with tainted devices is a nearer miss than a node without devices, and that
// the message names the taint and its DeviceTaintRule. The slice contains the taint because the scheduler's tracker would add
// it.
func TestTaintedDevicesAreNearer(t *testing.T) {
	tainted := slice(0, 1)
	taint := resourceapi.DeviceTaint{Key: "example.com/unhealthy", Effect: resourceapi.DeviceTaintEffectNoSchedule}
	for i := range tainted.Spec.Devices {
		tainted.Spec.Devices[i].Taints = []resourceapi.DeviceTaint{taint}
	}
	rule := &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: "repair"},
		Spec:       resourceapi.DeviceTaintRuleSpec{DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(driver)}, Taint: taint},
	}
	ctx, pl := start(t, true, class(), tainted, rule, constrain(t, claim(2), "any", "true"))
	require.Equal(t, "nearest miss: node node-1: request mla: too few matching devices are free (2 requested, 2 match, 0 free); "+
		"devices that match have taints that the claims don't tolerate: example.com/unhealthy=:NoSchedule of DeviceTaintRule repair",
		fail(ctx, t, pl, "node-0", nodeName).Message())
}

// TestNothingIsSaidTooLate checks that an explanation that is not finished in time is dropped.
func TestNothingIsSaidTooLate(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0, 2), constrain(t, claim(2), "ring2", ring2))
	state, info := framework.NewCycleState(), node(nodeName)
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	refused := pl.Filter(ctx, state, pod(), info)
	refused.SetPlugin(Name)
	pl.misses.Nodes = func() fwk.NodeInfoLister { return nodes{all: []fwk.NodeInfo{info}} }
	late, cancel := context.WithCancel(ctx)
	cancel()
	_, status = pl.PostFilter(late, state, pod(), framework.NewNodeToStatus(map[string]*fwk.Status{nodeName: refused}, refused))
	require.Equal(t, fwk.Unschedulable, status.Code())
	require.Empty(t, status.Message())
}

// TestFailedNodesAreNamed checks the message for an expression that fails on some nodes.
func TestFailedNodesAreNamed(t *testing.T) {
	c := constrain(t, claim(2), "row", "devices.all(d, d.attributes['mla.example.com'].row == 1)")
	raw := &c.Spec.Devices.Config[0].Opaque.Parameters.Raw
	*raw = []byte(strings.TrimSuffix(string(*raw), "}") + `, "failurePolicy": "NodeDoesNotFit"}`)
	ctx, pl := start(t, true, class(), slice(0, 1), c)
	require.Equal(t, "an expression fails on devices of 1 nodes, such as claim default/claim, constraint row, node node-1, "+
		"devices [mla.example.com/node-1/mla-0, mla.example.com/node-1/mla-1]: the expression fails: line 1, column 47: no such key: row"+
		". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields",
		strings.Split(fail(ctx, t, pl, "node-0", nodeName).Message(), "; ")[0])
}

// narrowed records two facts for each pod, by name: left is the number of nodes that PreFilter left, and taken is the node that
// the scheduler chose.
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

// leftFor returns the number of nodes that PreFilter left for a pod, -1 for all.
func (n *narrowed) leftFor(pod string) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.left[pod]
}

// watchScheduler runs Kubernetes' scheduler with a plugin that records its results.
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

// trial is a scheduler and a cluster of 100 nodes. On 90 of the nodes no square of devices is free, and two of these are
// tainted. The other 10 nodes have a free square and less CPU.
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

// schedule creates a pod that needs a square. It waits until the pod has a node or a message.
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

// TestSameIsSaidOfNodesThatWerePassedOver checks that a pod that fits nowhere gets the same message whether the scheduler
// visited all nodes or passed some over. The message has the nodes by reason, the result of preemption and the nearest miss.
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
	// PreFilter passed the tainted nodes over, too: they were never searched, but they are equivalent to nodes that were.
	require.Equal(t, trialNodes/10, r.leftFor("second"))
	require.Equal(t, visited, passedOver)
}

// TestPodFitsOnANodeThatIsLeft checks that a pod that fits gets one of the nodes that PreFilter left.
func TestPodFitsOnANodeThatIsLeft(t *testing.T) {
	r := newTrial(t, true)
	_, _ = r.schedule(t, "first", "5")
	node, message := r.schedule(t, "fits", "1")
	require.NotEmpty(t, node, message)
	require.Equal(t, trialNodes/10, r.leftFor("fits"))
	require.True(t, strings.HasSuffix(node, "0"), node)
}

// TestNothingIsPassedOverThatCouldNotBeTold checks that PreFilter leaves all nodes if another plugin's PostFilter runs first,
// since the statuses of passed-over nodes could not be filled in.
func TestNothingIsPassedOverThatCouldNotBeTold(t *testing.T) {
	r := newTrial(t, false)
	_, first := r.schedule(t, "first", "5")
	_, second := r.schedule(t, "second", "5")
	require.Equal(t, first, second)
	require.Equal(t, -1, r.leftFor("second"))
}

// largeCluster returns nodes with a 4x4 mesh each. On nine of ten nodes every other device is in use, so that no two neighbours
// are free. On the tenth all devices are free.
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

// runScheduler runs Kubernetes' scheduler until the test ends, with the plugin instead of upstream's. If isFirst is set, the
// plugin's PostFilter runs before all others, otherwise after them.
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
