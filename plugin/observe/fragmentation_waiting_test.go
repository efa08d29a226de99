// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	compbase "k8s.io/component-base/metrics"

	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/metrics"
)

// TestPodsThatWaitAreCounted checks that a pod that waits for extended resources counts in the same way as a waiting claim.
func TestPodsThatWaitAreCounted(t *testing.T) {
	class := blocks()
	raw := &class.Spec.Config[0].Opaque.Parameters.Raw
	*raw = bytes.Replace(*raw, []byte(`"name"`), []byte(`"enforcement": "Always", "name"`), 1)
	pod := func(name string, change func(*v1.Pod)) *v1.Pod {
		p := plugintest.ExtendedPod(resourceapi.ResourceDeviceClassPrefix+plugintest.ClassName, 8)
		p.Name, p.UID = name, "uid-of-"+p.UID
		change(p)
		return p
	}
	ctx, h := plugintest.NewHandle(t, class)
	pods := []*v1.Pod{
		pod("waits", func(*v1.Pod) {}), pod("waits-too", func(*v1.Pod) {}),
		pod("bound", func(p *v1.Pod) { p.Spec.NodeName = plugintest.NodeName }), pod("ended", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }),
		pod("deleted", func(p *v1.Pod) { now := metav1.Now(); p.DeletionTimestamp, p.Finalizers = &now, []string{"a/b"} }),
		pod("has-a-claim", func(p *v1.Pod) { p.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{} }),
	}
	for _, p := range pods {
		_, err := h.Client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, object := range []string{plugintest.NodeName, "node-2"} {
		_, err := h.Client.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: object}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = h.Client.ResourceV1().ResourceSlices().Create(ctx, sliceOf(object), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	registry := compbase.NewKubeRegistry()
	measured, err := metrics.New(registry, time.Now)
	require.NoError(t, err)
	m := NewFragmentationMonitor(h, h.SharedDRAManager(), plugintest.Features(), measured, never)
	h.Start(ctx, t, class)
	m.look(ctx)
	values := setsIn(t, registry)
	require.InDelta(t, 2, values["_claims mla.example.com block 8"], 0)
	require.InDelta(t, 2, values["s mla.example.com block 8 now"], 0)
}
