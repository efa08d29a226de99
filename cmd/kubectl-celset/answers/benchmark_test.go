// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/machine"
)

// large returns a source with nodes of 8 GPUs. On each node, one claim has half of the GPUs.
func large(t testing.TB, nodes int) answers.View {
	m, err := machine.ByName("intel-gaudi2")
	require.NoError(t, err)
	objects := &clusterstate.Objects{Classes: m.DeviceClasses(), HasCluster: true}
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		objects.Nodes = append(objects.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}},
		})
		slices, err := m.ResourceSlices(name)
		require.NoError(t, err)
		objects.Slices = append(objects.Slices, slices...)
		claim := claimFor("used-"+name, objects.Classes[0].Name, 4)
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		for _, device := range slices[0].Spec.Devices[:4] {
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
				Request: "devices", Driver: slices[0].Spec.Driver, Pool: slices[0].Spec.Pool.Name, Device: device.Name,
			})
		}
		objects.Claims = append(objects.Claims, claim)
	}
	objects.Claims = append(objects.Claims, claimFor("fits", objects.Classes[0].Name, 4), claimFor("too-large", objects.Classes[0].Name, 8))
	return answers.View{Objects: objects, Origin: "test", Revision: "1"}
}

func claimFor(name, class string, count int64) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "devices", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count},
		}}}},
	}
}

// revising is a source whose revision may change with each question.
type revising struct {
	view    answers.View
	revises bool
	count   atomic.Int64
}

// View implements [answers.Source].
func (r *revising) View(context.Context) (*answers.View, error) {
	if r.revises {
		r.count.Add(1)
	}
	view := r.view
	view.Revision = fmt.Sprint(r.count.Load())
	return &view, nil
}

func BenchmarkOverview(b *testing.B) {
	view := large(b, 5000)
	for name, revises := range map[string]bool{"sameRevision": false, "newRevision": true} {
		b.Run(name, func(b *testing.B) {
			source := &revising{view: view, revises: revises}
			a := answers.New(source, answers.Options{Features: features})
			for b.Loop() {
				answer, err := a.Answer(b.Context(), answers.Overview, []byte("{}"))
				require.NoError(b, err)
				raw, err := json.Marshal(answer)
				require.NoError(b, err)
				b.ReportMetric(float64(len(raw)), "bytes")
			}
		})
	}
}

func BenchmarkExplain(b *testing.B) {
	a := answers.New(answers.Static(large(b, 5000)), answers.Options{Features: features})
	for _, subject := range []string{"claim/fits", "claim/too-large"} {
		b.Run(subject, func(b *testing.B) {
			for b.Loop() {
				answer, err := a.Answer(b.Context(), answers.Explain, fmt.Appendf(nil, `{"subject": %q, "namespace": "default"}`, subject))
				require.NoError(b, err)
				_ = answer
			}
		})
	}
	b.Run("node", func(b *testing.B) {
		for b.Loop() {
			_, err := a.Answer(b.Context(), answers.Node, []byte(`{"name": "node-0007"}`))
			require.NoError(b, err)
		}
	})
}
