// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// cluster is a source with one claim.
type cluster struct{ claim *resourceapi.ResourceClaim }

func (c cluster) Get(string, string) (*resourceapi.ResourceClaim, error) { return c.claim, nil }

type classes struct{}

func (classes) Get(name string) (*resourceapi.DeviceClass, error) {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
}

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return nil, nil }

func selecting(expressions ...string) *resourceapi.ResourceClaim {
	request := &resourceapi.ExactDeviceRequest{DeviceClassName: "mla.example.com", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 2}
	for _, expression := range expressions {
		request.Selectors = append(request.Selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim", UID: "claim"},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "mla", Exactly: request}}}},
	}
}

func newAhead(t *testing.T, claim *resourceapi.ResourceClaim, activate func(*v1.Pod)) Ahead {
	t.Helper()
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	preparer, err := allocator.NewPreparer(environment, dracel.Features{})
	require.NoError(t, err)
	store := NewStoreOf(preparer, environment, cluster{claim}, classes{}, 128<<20)
	return Ahead{View: View{store, true}, Background: NewBackground(t.Context()), Activate: activate}
}

// TestFormerSelectorsAreForgotten checks that the store drops its claims when the Preparer begins a new selector set.
func TestFormerSelectorsAreForgotten(t *testing.T) {
	claim := selecting("true")
	ahead := newAhead(t, claim, nil)
	keep := func(claim *resourceapi.ResourceClaim) {
		_, err := ahead.Keep(t.Context(), claim)
		require.NoError(t, err)
	}
	keep(claim)
	require.Equal(t, 1, ahead.prepared.Len())
	former := ahead.Generation()
	for i := 0; ahead.Generation() == former; i++ {
		large := selecting("true", fmt.Sprintf("%d == 1", i)+strings.Repeat(" && device.driver != 'a'", 300))
		large.UID = types.UID(fmt.Sprint("large-", i))
		keep(large)
	}
	keep(claim)
	require.Equal(t, 1, ahead.prepared.Len(), "nothing of the former generation")
	_, missing := ahead.Find([]*resourceapi.ResourceClaim{claim})
	require.Empty(t, missing)
}

// TestWhatIsGoneIsNotKept checks that a waiting pod and its claim can be garbage collected after they were deleted.
func TestWhatIsGoneIsNotKept(t *testing.T) {
	goOn, activated := make(chan struct{}), make(chan string, 1)
	ahead := newAhead(t, selecting(), func(p *v1.Pod) {
		require.NotNil(t, p.Spec.SchedulingGroup, "the queue has members of a group in another place")
		activated <- string(p.UID) + " " + p.Name
	})
	ahead.Add("default", wanted{claim: "first"}, func(context.Context) { <-goOn }, func() {})
	wait := func() (weak.Pointer[v1.Pod], weak.Pointer[resourceapi.ResourceClaim]) {
		p, c := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: "uid"}}, selecting("true")
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{}
		ahead.Await(p, []*resourceapi.ResourceClaim{c})
		return weak.Make(p), weak.Make(c)
	}
	p, c := wait()
	goruntime.GC()
	goruntime.GC()
	require.Nil(t, p.Value())
	require.Nil(t, c.Value())
	close(goOn)
	require.Equal(t, "uid pod", <-activated)
}

// TestPodsWaitOnceForAClaim checks that repeated calls of Await store a pod once. PreEnqueue calls Await after each event that
// may concern the pod.
func TestPodsWaitOnceForAClaim(t *testing.T) {
	ahead := newAhead(t, selecting("true"), func(*v1.Pod) {})
	release := make(chan struct{})
	defer close(release)
	ahead.Add("default", wanted{claim: "another"}, func(context.Context) { <-release }, func() {})
	const events = 100
	for range events {
		ahead.Await(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}}, []*resourceapi.ResourceClaim{selecting("true")})
	}
	ahead.mutex.Lock()
	defer ahead.mutex.Unlock()
	require.Len(t, ahead.waiting, 1)
	for _, pods := range ahead.waiting {
		require.Len(t, pods, 1, "after %d events", events)
	}
}
