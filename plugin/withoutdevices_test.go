// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/events"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	fwk "k8s.io/kube-scheduler/framework"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	tf "k8s.io/kubernetes/pkg/scheduler/testing/framework"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/internal/testing/cases"
)

// crowd is a random state of nodes, pods and PodDisruptionBudgets. Some pods have devices. All priorities differ, so exactly
// one node and one set of victims is best.
type crowd struct {
	nodes   []*v1.Node
	pods    []*v1.Pod
	objects []runtime.Object
	// wants is the preemptor, a pod without devices.
	wants *v1.Pod
}

func randomCrowd(random *rand.Rand) *crowd {
	c := &crowd{objects: []runtime.Object{class()}}
	priorities := random.Perm(100)
	for i := range 2 + random.IntN(5) {
		e := &evictable{node: &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{v1.LabelHostname: fmt.Sprintf("node-%d", i)}},
			Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"), v1.ResourcePods: resource.MustParse("7")}},
		}}
		e.slice = slice(0, 1, 2, 3, 4, 5, 6, 7)
		e.slice.Name, e.slice.Spec.NodeName, e.slice.Spec.Pool.Name = e.node.Name, &e.node.Name, e.node.Name
		for j := range random.IntN(8) {
			e.add(random, fmt.Sprintf("pod-%d-%d", i, j), []int{j})
			p := e.pods[j]
			priority := int32(priorities[0])
			priorities = priorities[1:]
			p.Spec.Priority = &priority
			c.dress(random, p)
			if random.IntN(3) > 0 {
				p.Spec.ResourceClaims = nil
			} else {
				c.objects = append(c.objects, e.claims[j])
			}
			c.objects = append(c.objects, p)
		}
		c.nodes, c.pods = append(c.nodes, e.node), append(c.pods, e.pods...)
		c.objects = append(c.objects, e.node, e.slice)
	}
	for i := range random.IntN(3) {
		c.objects = append(c.objects, &policy.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("budget-%d", i)},
			Spec:       policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"budget": fmt.Sprint(i)}}},
			Status:     policy.PodDisruptionBudgetStatus{DisruptionsAllowed: random.Int32N(3)},
		})
	}
	c.wants = evictablePod("wants", int32(20+random.IntN(90)), "1", "")
	c.wants.Spec.ResourceClaims = nil
	c.dress(random, c.wants)
	if random.IntN(8) == 0 {
		never := v1.PreemptNever
		c.wants.Spec.PreemptionPolicy = &never
	}
	c.objects = append(c.objects, c.wants)
	return c
}

// dress gives a pod random requests, host ports and anti-affinity, which may conflict with other pods.
func (c *crowd) dress(random *rand.Rand, p *v1.Pod) {
	container := &p.Spec.Containers[0]
	container.Resources.Requests[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(500*(1+random.IntN(8))), resource.DecimalSI)
	if random.IntN(4) == 0 {
		container.Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: int32(8000 + random.IntN(2)), Protocol: v1.ProtocolTCP}}
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels["app"] = fmt.Sprint(random.IntN(3))
	if random.IntN(4) == 0 {
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(random.IntN(3))}},
		}}}}
	}
}

// preempted is the outcome of one attempt to schedule the preemptor.
type preempted struct {
	fits      bool
	nominated string
	message   string
	gone      []types.UID
}

// preempt runs the filters for all nodes, and PostFilter if no node fits.
func (c *crowd) preempt(t *testing.T, ours bool) (result preempted) {
	t.Helper()
	ctx, h := newHandle(t, c.objects...)
	snapshot := internalcache.NewSnapshot(c.pods, c.nodes)
	devices := tf.RegisterPluginAsExtensions(dynamicresources.Name, frameworkruntime.FactoryAdapter(features(), dynamicresources.New), "PreFilter", "Filter", "PostFilter")
	if ours {
		devices = tf.RegisterPluginAsExtensions(Name, func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			shared := newShared()
			shared.preempts = true
			return newPlugin(ctx, args, handle, features(), true, newMetrics(t), shared)
		}, "PreFilter", "Filter", "PostFilter")
	}
	f, err := tf.NewFramework(ctx, []tf.RegisterPluginFunc{
		tf.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		tf.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		tf.RegisterPluginAsExtensions(noderesources.Name, frameworkruntime.FactoryAdapter(features(), noderesources.NewFit), "PreFilter", "Filter"),
		tf.RegisterPluginAsExtensions(nodeports.Name, frameworkruntime.FactoryAdapter(features(), nodeports.New), "PreFilter", "Filter"),
		tf.RegisterPluginAsExtensions(interpodaffinity.Name, frameworkruntime.FactoryAdapter(features(), interpodaffinity.New), "PreFilter", "Filter"),
		devices,
		tf.RegisterPluginAsExtensions(defaultpreemption.Name, frameworkruntime.FactoryAdapter(features(), defaultpreemption.New), "PostFilter"),
	}, "default-scheduler",
		frameworkruntime.WithClientSet(h.Client), frameworkruntime.WithInformerFactory(h.Factory), frameworkruntime.WithSharedDRAManager(h.Manager),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}), frameworkruntime.WithPodNominator(internalqueue.NewSchedulingQueue(nil, h.Factory)),
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithMutableSnapshotLister(snapshot),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()), frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
	)
	require.NoError(t, err)
	h.Start(ctx, t, c.objects...)

	state := framework.NewCycleState()
	_, status, _ := f.RunPreFilterPlugins(ctx, state, c.wants)
	require.True(t, status.IsSuccess(), status)
	infos, err := snapshot.NodeInfos().List()
	require.NoError(t, err)
	statuses := framework.NewDefaultNodeToStatus()
	for _, info := range infos {
		status := f.RunFilterPlugins(ctx, state, c.wants, info)
		if status.IsSuccess() {
			return preempted{fits: true}
		}
		require.True(t, status.IsRejected(), status)
		statuses.Set(info.Node().Name, status)
	}
	post, status := f.RunPostFilterPlugins(ctx, state, c.wants, statuses)
	result.message = status.Message()
	if post != nil && post.NominatingInfo != nil {
		result.nominated = post.NominatedNodeName
	}
	list, err := h.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range c.pods {
		if !slices.ContainsFunc(list.Items, func(there v1.Pod) bool { return there.UID == p.UID }) {
			result.gone = append(result.gone, p.UID)
		}
	}
	return result
}

// TestPodsWithoutDevicesArePreemptedForAsEver checks a preemptor without devices. Its nominated node, victims and message must
// be the same with and without celset's plugin.
func TestPodsWithoutDevicesArePreemptedForAsEver(t *testing.T) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		kubefeatures.SchedulerAsyncPreemption: false, kubefeatures.SchedulerAsyncAPICalls: false,
	})
	schedulermetrics.Register()
	crowds := cases.Of(100, 1000)
	fit, nominated, several, refused := 0, 0, 0, 0
	for seed := range crowds {
		c := randomCrowd(rand.New(rand.NewPCG(uint64(seed), cases.Seed())))
		theirs, ours := c.preempt(t, false), c.preempt(t, true)
		require.Equal(t, theirs, ours, "seed %d", seed)
		switch {
		case ours.fits:
			fit++
		case ours.nominated == "":
			refused++
			require.Empty(t, ours.gone)
		default:
			nominated++
			require.NotEmpty(t, ours.gone)
			if len(ours.gone) > 1 {
				several++
			}
		}
	}
	t.Logf("%d cases: %d fit, others are evicted for %d, several for %d, and %d are refused", crowds, fit, nominated, several, refused)
	for _, n := range []int{fit, nominated, several, refused} {
		require.Positive(t, n)
	}
}

// TestImportanceIsUpstreams checks that CompareImportance orders pods as kube-scheduler does.
func TestImportanceIsUpstreams(t *testing.T) {
	var pods []*v1.Pod
	for _, priority := range []*int32{nil, ptr.To[int32](-1), ptr.To[int32](0), ptr.To[int32](7)} {
		for _, start := range []int64{0, 10, 20} {
			pod := &v1.Pod{Spec: v1.PodSpec{Priority: priority}}
			if start != 0 {
				pod.Status.StartTime = &metav1.Time{Time: time.Unix(start, 0)}
			}
			pods = append(pods, pod)
		}
	}
	victim := func(pod *v1.Pod) upstream.Victim {
		info, err := framework.NewPodInfo(pod)
		require.NoError(t, err)
		return upstream.NewPodVictim(info, nil, nil)
	}
	now := time.Now()
	for _, a := range pods {
		for _, b := range pods {
			if a.Status.StartTime == nil && b.Status.StartTime == nil {
				// For pods without a start time upstream reads the clock twice, so its order is not determined.
				continue
			}
			require.Equal(t, upstream.MoreImportantVictim(victim(a), victim(b)), preemption.CompareImportance(a, b, now) < 0, "%v, %v", a, b)
		}
	}
}
