// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
)

func eventsIn(ctx context.Context, t *testing.T, h *handle) []eventsv1.Event {
	t.Helper()
	list, err := h.client.EventsV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// TestClassesAreTold: there is one event for each change of a class, whoever writes it.
func TestClassesAreTold(t *testing.T) {
	class, other := classByDefault("true"), class()
	class.Generation, other.Name = 1, "other"
	ctx, h := newHandle(t, class, other)
	failures := 0
	h.client.(*fake.Clientset).PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		failures++
		return failures == 1, nil, errors.New("away")
	})
	for range 2 {
		n := &classNotices{enabled: true}
		n.addProfile("b", configv1alpha1.AllocatorConstrained)
		n.addProfile("default-scheduler", configv1alpha1.AllocatorUpstream)
		n.addProfile("a", configv1alpha1.AllocatorAll)
		require.NoError(t, n.watch(ctx, h.client, h.factory))
	}
	h.start(ctx, t, class, other)
	require.Eventually(t, func() bool { return len(eventsIn(ctx, t, h)) == 1 }, waitFor, tick)

	changed := class.DeepCopy()
	changed.Generation = 2
	_, err := h.client.ResourceV1().DeviceClasses().Update(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(eventsIn(ctx, t, h)) == 2 }, waitFor, tick)
	changed.Labels = map[string]string{"a": "b"}
	_, err = h.client.ResourceV1().DeviceClasses().Update(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	// Changes are handled in their order.
	changed.Generation = 3
	_, err = h.client.ResourceV1().DeviceClasses().Update(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(eventsIn(ctx, t, h)) >= 3 }, waitFor, tick)
	require.Len(t, eventsIn(ctx, t, h), 3)
	for _, event := range eventsIn(ctx, t, h) {
		require.Equal(t, "Each request of the class for several devices is held to ring2 of spec.config[0], for pods of the profiles a, b; "+
			"the profiles default-scheduler have allocator: Upstream and ignore it, as other schedulers do", event.Note)
		require.Equal(t, class.Name, event.Regarding.Name)
	}
}

func TestNotices(t *testing.T) {
	broken := classByDefault("")
	for name, test := range map[string]struct {
		class        *resourceapi.DeviceClass
		enabled      bool
		mode         configv1alpha1.AllocatorMode
		kind, reason string
		note         string
	}{
		"holds":    {classByDefault("true"), true, configv1alpha1.AllocatorConstrained, "Normal", defaultsHold, "is held to ring2 of spec.config[0], for pods of the profiles one; other schedulers ignore it"},
		"gate off": {classByDefault("true"), false, configv1alpha1.AllocatorConstrained, "Warning", defaultsIgnored, "(ring2 of spec.config[0]) do not hold, because the feature gate DRACELDeviceConstraint is disabled"},
		"upstream": {classByDefault("true"), true, configv1alpha1.AllocatorUpstream, "Warning", defaultsIgnored, "no profile of the scheduler applies them"},
		"invalid":  {broken, true, configv1alpha1.AllocatorAll, "Warning", defaultsInvalid, "Pods of the profiles one that request several devices of the class wait until its defaults are mended: DeviceClass mla.example.com: spec.config[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &classNotices{enabled: test.enabled}
			n.addProfile("one", test.mode)
			event := n.event(test.class)
			require.Equal(t, []string{test.kind, test.reason}, []string{event.Type, event.Reason})
			require.Contains(t, event.Note, test.note)
		})
	}
}
