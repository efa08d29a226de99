// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/simulation"
	"github.com/celset/celset/plugin"
)

// handleOf returns a framework without plugins.
func handleOf(t *testing.T, manager fwk.SharedDRAManager) framework.Framework {
	f, err := frameworkruntime.NewFramework(t.Context(), nil, nil, frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(fake.NewClientset(), 0)),
		frameworkruntime.WithSnapshotSharedLister(cache.NewEmptySnapshot()), frameworkruntime.WithSharedDRAManager(manager))
	require.NoError(t, err)
	return f
}

// TestNewArguments checks that wrong arguments are rejected.
func TestNewArguments(t *testing.T) {
	on := plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	without := on
	without.EnableDRASchedulerFilterTimeout = false
	for name, test := range map[string]struct {
		args     apiruntime.Object
		features plfeature.Features
		refused  bool
	}{
		"none":                     {nil, on, false},
		"upstream's":               {&config.DynamicResourcesArgs{}, on, false},
		"nil upstream's":           {(*config.DynamicResourcesArgs)(nil), on, false},
		"nil raw":                  {(*apiruntime.Unknown)(nil), on, false},
		"empty raw":                {&apiruntime.Unknown{}, on, false},
		"another kind":             {&apiruntime.Unknown{Raw: []byte(`{"kind": "InterPodAffinityArgs", "apiVersion": "kubescheduler.config.k8s.io/v1"}`)}, on, true},
		"no JSON":                  {&apiruntime.Unknown{Raw: []byte(`{`)}, on, true},
		"another type":             {&config.InterPodAffinityArgs{}, on, true},
		"negative":                 {&config.DynamicResourcesArgs{FilterTimeout: &metav1.Duration{Duration: -time.Second}}, on, true},
		"short":                    {&config.DynamicResourcesArgs{BindingTimeout: &metav1.Duration{Duration: time.Millisecond}}, on, true},
		"of a feature that is off": {&config.DynamicResourcesArgs{FilterTimeout: &metav1.Duration{Duration: time.Second}}, without, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := handleOf(t, &simulation.Lists{})
			require.NotPanics(t, func() {
				_, err := plugin.New(t.Context(), test.args, f, test.features)
				t.Log(err)
				require.Equal(t, test.refused, err != nil, "%v", err)
			})
		})
	}
}

// TestNewAllPoints calls every extension point of a plugin made by New, with several sets of features.
func TestNewAllPoints(t *testing.T) { newAllPoints(t, false) }

// TestNewWithoutStatuses does the same with nil instead of the nodes' statuses, because upstream's PostFilter accepts nil.
func TestNewWithoutStatuses(t *testing.T) { newAllPoints(t, true) }

func newAllPoints(t *testing.T, withoutStatuses bool) {
	on := plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	all := on
	all.EnableDRAExtendedResource, all.EnableDRAPrioritizedList, all.EnableDRADeviceBindingConditions, all.EnableDRAResourceClaimDeviceStatus = true, true, true, true
	all.EnableGenericWorkload, all.EnableDRAWorkloadResourceClaims, all.EnableTopologyAwareWorkloadScheduling, all.EnableDRANodeAllocatableResources = true, true, true, true
	all.EnableInPlacePodVerticalScalingSchedulerPreemption = true
	for name, features := range map[string]plfeature.Features{"default": on, "all": all, "off": {}, "bare": {EnableDynamicResourceAllocation: true}} {
		for _, args := range []apiruntime.Object{nil, &config.DynamicResourcesArgs{}} {
			t.Run(fmt.Sprintf("%s/%T", name, args), func(t *testing.T) {
				s := newSimulated(t, plugin.Name, plugin.New, false)
				made, err := s.ring.ResourceSlices("node")
				require.NoError(t, err)
				s.Lists.Slices = made
				var manager fwk.SharedDRAManager = s.Lists
				if name == "off" {
					manager = nil
				}
				f := handleOf(t, manager)
				made2, err := plugin.New(t.Context(), args, f, features)
				require.NoError(t, err)
				pl := made2.(*plugin.DynamicResourcesCEL)
				ctx := t.Context()
				info := framework.NewNodeInfo()
				info.SetNode(&v1.Node{})
				info.Node().Name = "node"
				extended := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"example.com/gpu": resource.MustParse("1")}}}}}}
				extended.Name, extended.UID = "extended", "extended"
				missing := s.Pod.DeepCopy()
				missing.Spec.ResourceClaims[0].ResourceClaimName = ptr.To("none")
				nothing := &v1.Pod{}
				template := s.Pod.DeepCopy()
				template.Spec.ResourceClaims[0].ResourceClaimName, template.Spec.ResourceClaims[0].ResourceClaimTemplateName = nil, ptr.To("x")
				group := s.Pod.DeepCopy()
				group.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("g")}
				require.NotPanics(t, func() {
					events, err := pl.EventsToRegister(ctx)
					require.NoError(t, err)
					for _, pod := range []*v1.Pod{s.Pod, extended, missing, nothing, template, group} {
						state := framework.NewCycleState()
						t.Log(pod.Name, pl.Name(), pl.PreEnqueue(ctx, pod))
						for _, e := range events {
							if e.QueueingHintFn != nil {
								if e.Event.Resource != fwk.ResourceClaim {
									_, _ = e.QueueingHintFn(klog.FromContext(ctx), pod, s.Pod, s.Pod)
									continue
								}
								for _, pair := range [][2]any{{nil, s.Lists.Claims["default/claim"]}, {s.Lists.Claims["default/claim"], nil}, {s.Lists.Claims["default/claim"], s.Lists.Claims["default/claim"]}} {
									_, _ = e.QueueingHintFn(klog.FromContext(ctx), pod, pair[0], pair[1])
								}
							}
						}
						t.Log(pl.PostFilter(ctx, state, pod, framework.NewDefaultNodeToStatus()))
						t.Log(pl.Filter(ctx, framework.NewCycleState(), pod, info))
						t.Log(pl.Reserve(ctx, framework.NewCycleState(), pod, "node"))
						pl.Unreserve(ctx, framework.NewCycleState(), pod, "node")
						_, status := pl.PreFilter(ctx, state, pod, []fwk.NodeInfo{info})
						t.Log("PreFilter", status)
						t.Log(pl.SignPod(ctx, pod))
						if e := pl.PreFilterExtensions(); e != nil {
							podInfo, err := framework.NewPodInfo(s.Pod)
							require.NoError(t, err)
							t.Log(e.AddPod(ctx, state, pod, podInfo, info), e.RemovePod(ctx, state, pod, podInfo, info))
						}
						status = pl.Filter(ctx, state, pod, info)
						t.Log("Filter", status)
						if status.IsSuccess() {
							t.Log(pl.Score(ctx, state, pod, info))
							t.Log(pl.ScoreExtensions().NormalizeScore(ctx, state, pod, fwk.NodeScoreList{{Name: "node", Score: 1}}))
							t.Log("Reserve", pl.Reserve(ctx, state, pod, "node"))
							t.Log(pl.PreBindPreFlight(ctx, state, pod, "node"))
							pl.Unreserve(ctx, state.Clone(), pod, "node")
							pl.Unreserve(ctx, state, pod, "node")
						}
						t.Log(pl.PostFilter(ctx, state, pod, framework.NewDefaultNodeToStatus()))
						if withoutStatuses {
							t.Log(pl.PostFilter(ctx, state, pod, nil))
						}
					}
				})
			})
		}
	}
}

func nameOf(claim *resourceapi.ResourceClaim) string {
	name := string(*claim.Spec.Devices.Constraints[0].MatchAttribute)
	return name[len("celset.dev/"):]
}

// TestSimulatedEdits simulates changes of a claim and of a class. Simulated objects have no resource versions.
func TestSimulatedEdits(t *testing.T) {
	s := newSimulated(t, plugin.Name, plugin.New, false)
	require.True(t, s.try(t, "node", 0))
	t.Run("class", func(t *testing.T) {
		before := s.Lists.Classes
		defer func() { s.Lists.Classes = before }()
		s.Lists.Classes = nil
		for _, class := range before {
			class = class.DeepCopy()
			class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "false"}}}
			s.Lists.Classes = append(s.Lists.Classes, class)
		}
		require.False(t, s.try(t, "node", 0), "no device is of the class any more")
	})
	t.Run("claim", func(t *testing.T) {
		before := s.Lists.Claims["default/claim"]
		defer func() { s.Lists.Claims["default/claim"] = before }()
		never := before.DeepCopy()
		for i := range never.Spec.Devices.Config {
			never.Spec.Devices.Config[i].Opaque.Parameters.Raw = []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "` + nameOf(never) + `", "expression": "false"}`)
		}
		s.Lists.Claims["default/claim"] = never
		require.False(t, s.try(t, "node", 0), "the constraint is false")
	})
}
