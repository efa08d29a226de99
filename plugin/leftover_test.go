// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"
)

// leftover is the claim that was made for the extended resources of the pod.
func leftover(of *v1.Pod) *resourceapi.ResourceClaim {
	c := claim(1)
	c.Name = of.Name + "-extended-resources-x7v2p"
	c.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: of.Name, UID: of.UID, Controller: ptr.To(true)}}
	return c
}

func TestPodIsTriedAgainWhenItsLeftoverIsGone(t *testing.T) {
	ctx, pl := start(t, true)
	logger := klog.FromContext(ctx)
	events, err := pl.EventsToRegister(ctx)
	require.NoError(t, err)
	upstream, err := pl.DynamicResources.EventsToRegister(ctx)
	require.NoError(t, err)
	require.Len(t, events, len(upstream)+1)

	owner, other := pod(), pod()
	owner.Spec.ResourceClaims = nil
	other.Name, other.UID = "other", "other"
	again := pod() // of the same name
	again.UID = "again"
	unowned := leftover(owner)
	unowned.OwnerReferences = nil
	plain := leftover(owner)
	plain.Annotations = nil
	ownerName := types.NamespacedName{Namespace: "default", Name: "pod"}

	seen := false
	for i, event := range events[:len(upstream)] {
		require.Empty(t, cmp.Diff(upstream[i].Event, event.Event))
		if event.Event.Resource != fwk.ResourceClaim {
			continue
		}
		seen = true
		for name, tc := range map[string]struct {
			pod      *v1.Pod
			old, new any
			want     fwk.QueueingHint
			pods     []types.NamespacedName
		}{
			"gone":                  {pod: owner, old: leftover(owner), want: fwk.Queue, pods: []types.NamespacedName{ownerName}},
			"another pod's":         {pod: other, old: leftover(owner), want: fwk.QueueSkip, pods: []types.NamespacedName{ownerName}},
			"of an earlier pod":     {pod: again, old: leftover(owner), want: fwk.QueueSkip, pods: []types.NamespacedName{ownerName}},
			"without owner":         {pod: owner, old: unowned, want: fwk.QueueSkip},
			"made by somebody else": {pod: owner, old: plain, want: fwk.QueueSkip},
			"it is still there":     {pod: owner, old: leftover(owner), new: leftover(owner), want: fwk.QueueSkip},
			"it is new":             {pod: owner, new: leftover(owner), want: fwk.QueueSkip},
		} {
			t.Run(name, func(t *testing.T) {
				got, err := event.QueueingHintFn(logger, tc.pod, tc.old, tc.new)
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
				considered, err := event.PreQueueingHintFn(logger, tc.old, tc.new)
				require.NoError(t, err)
				require.False(t, considered.AllPods)
				require.ElementsMatch(t, tc.pods, considered.Pods)
			})
		}
		t.Run("nobody knows what is gone", func(t *testing.T) {
			got, err := event.QueueingHintFn(logger, owner, cache.DeletedFinalStateUnknown{}, nil)
			require.NoError(t, err)
			require.Equal(t, fwk.Queue, got)
		})
	}
	require.True(t, seen)
}

func TestAllPodsAreConsideredWhereUpstreamConsidersThem(t *testing.T) {
	require.Nil(t, considerOwnerOfLeftover(nil))
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		result fwk.PreQueueingHintResult
		err    error
	}{
		"all":   {result: fwk.PreQueueingHintResult{AllPods: true}},
		"error": {err: failed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := considerOwnerOfLeftover(func(klog.Logger, any, any) (fwk.PreQueueingHintResult, error) {
				return tc.result, tc.err
			})(klog.Background(), leftover(pod()), nil)
			require.Equal(t, tc.err, err)
			require.Empty(t, cmp.Diff(tc.result, got))
		})
	}
}
