// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// A pod that is bound though the scheduler was not told so keeps its claims; one that is not gives them back.
func TestBoundPodsKeepTheirClaims(t *testing.T) {
	for name, test := range map[string]struct {
		// live is what the API server has; nil: nothing.
		live     func(*v1.Pod) *v1.Pod
		failures int
		keeps    bool
	}{
		"bound":                {live: func(p *v1.Pod) *v1.Pod { p.Spec.NodeName = nodeName; return p }, keeps: true},
		"bound, told later":    {live: func(p *v1.Pod) *v1.Pod { p.Spec.NodeName = nodeName; return p }, keeps: true, failures: 1},
		"not bound":            {live: func(p *v1.Pod) *v1.Pod { return p }},
		"bound by somebody":    {live: func(p *v1.Pod) *v1.Pod { p.Spec.NodeName = "another"; return p }, keeps: true},
		"another pod, bound":   {live: func(p *v1.Pod) *v1.Pod { p.UID, p.Spec.NodeName = "another", nodeName; return p }},
		"gone":                 {},
		"gone, and told later": {failures: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFallible(t, class(), slice(0), renamed(claim(1), "first"))
			user := renamed(pod(), "first")
			if test.live != nil {
				require.NoError(t, f.client.Tracker().Add(test.live(user.DeepCopy())))
			}
			failures := test.failures
			f.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				failures--
				return failures >= 0, nil, errors.New("no answer")
			})
			state := framework.NewCycleState()
			_, status := f.PreFilter(f.ctx, state, user, nil)
			require.True(t, status.IsSuccess(), status)
			require.True(t, f.Filter(f.ctx, state, user, node(nodeName)).IsSuccess())
			require.True(t, f.Reserve(f.ctx, state, user, nodeName).IsSuccess())
			require.True(t, f.PreBind(f.ctx, state, user, nodeName).IsSuccess())
			before := len(f.client.Actions())
			f.Unreserve(f.ctx, state, user, nodeName)
			patches := 0
			for _, action := range f.client.Actions()[before:] {
				if action.Matches("patch", "resourceclaims/status") || action.GetVerb() == "patch" && action.GetResource().Resource == "resourceclaims" {
					patches++
				}
			}
			require.Equal(t, !test.keeps, patches > 0, "%v", f.client.Actions()[before:])
		})
	}
}

// reservedFor gives a claim a device of a node, for a pod.
func reservedFor(user *v1.Pod, of *resourceapi.ResourceClaim, device int64) *resourceapi.ResourceClaim {
	of.Finalizers = []string{resourceapi.Finalizer}
	of.Status.Allocation = &resourceapi.AllocationResult{
		Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
			{Request: "mla", Driver: driver, Pool: nodeName, Device: deviceName(device)},
		}},
		NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{nodeName}},
		}}}},
	}
	of.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: user.Name, UID: user.UID}}
	return of
}

// A pod that fits nowhere, as far as this scheduler knows, keeps its devices if another one has bound it meanwhile, and
// also if that can't be found out.
func TestNothingIsTakenFromBoundPods(t *testing.T) {
	for name, test := range map[string]struct {
		node    string
		failure error
		says    string
		takes   bool
	}{
		"bound":     {node: nodeName, says: "the pod is bound to node " + nodeName + " already, and keeps its devices"},
		"not bound": {takes: true, says: "deallocation of ResourceClaim completed"},
		"not known": {failure: errors.New("no answer"), says: "it is not known whether the pod is bound, so that nothing is taken back: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			user := renamed(pod(), "first")
			f := startFallible(t, class(), slice(0), reservedFor(user, renamed(claim(1), "first"), 0))
			live := user.DeepCopy()
			live.Spec.NodeName = test.node
			require.NoError(t, f.client.Tracker().Add(live))
			f.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return test.failure != nil, nil, test.failure
			})
			state := framework.NewCycleState()
			_, status := f.PreFilter(f.ctx, state, user, nil)
			require.True(t, status.IsSuccess(), status)
			require.False(t, f.Filter(f.ctx, state, user, node("other")).IsSuccess())
			_, status = f.PostFilter(f.ctx, state, user, framework.NewDefaultNodeToStatus())
			require.Equal(t, test.says, status.Message())
			stored, err := f.client.ResourceV1().ResourceClaims("default").Get(t.Context(), "first", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, test.takes, stored.Status.Allocation == nil)
		})
	}
}

// So does one of several pods that are scheduled together.
func TestNothingIsTakenFromBoundPodsOfAGroup(t *testing.T) {
	user := renamed(pod(), "first")
	f := startFallible(t, class(), slice(0), reservedFor(user, renamed(claim(1), "first"), 0))
	live := user.DeepCopy()
	live.Spec.NodeName = nodeName
	require.NoError(t, f.client.Tracker().Add(live))
	_, status := f.PodGroupPostFilter(f.ctx, nil, group{pods: []*v1.Pod{renamed(pod(), "free"), user}}, nil)
	require.Equal(t, fwk.Unschedulable, status.Code())
	require.Equal(t, "first: the pod is bound to node "+nodeName+" already, and keeps its devices", status.Message())
}

type group struct {
	fwk.PodGroupInfo
	pods []*v1.Pod
}

func (g group) GetUnscheduledPods() []*v1.Pod { return g.pods }

// The claims that a pod has are those that it names, and the one for its extended resources.
func TestClaimsInAPod(t *testing.T) {
	user := renamed(pod(), "first")
	user.Spec.ResourceClaims = append(user.Spec.ResourceClaims, v1.PodResourceClaim{Name: "made", ResourceClaimTemplateName: new(string)}, v1.PodResourceClaim{Name: "not made", ResourceClaimTemplateName: new(string)})
	made := "first-made-x"
	user.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "made", ResourceClaimName: &made}}
	user.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "extended"}
	require.Equal(t, sets.New("first", "first-made-x", "extended"), claimsIn(user))
}

// What is taken back before the binding asks nobody.
func TestUnreserveBeforeBinding(t *testing.T) {
	f := startFallible(t, class(), slice(0), renamed(claim(1), "first"))
	user := renamed(pod(), "first")
	state := framework.NewCycleState()
	_, status := f.PreFilter(f.ctx, state, user, nil)
	require.True(t, status.IsSuccess(), status)
	require.True(t, f.Filter(f.ctx, state, user, node(nodeName)).IsSuccess())
	require.True(t, f.Reserve(f.ctx, state, user, nodeName).IsSuccess())
	before := len(f.client.Actions())
	f.Unreserve(f.ctx, state, user, nodeName)
	require.Len(t, f.client.Actions(), before)
	require.Nil(t, f.claims.ResourceClaims().GetPendingAllocation("first"))
}
