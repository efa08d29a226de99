// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/preemption"
)

// TestImportanceIsUpstreams: who has no scheduler orders pods as it does.
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
				// Upstream asks for the time twice.
				continue
			}
			require.Equal(t, upstream.MoreImportantVictim(victim(a), victim(b)), preemption.CompareImportance(a, b, now) < 0, "%v, %v", a, b)
		}
	}
}
