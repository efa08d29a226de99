// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// groupOf returns n pods of one scheduling group.
func groupOf(namespace string, n int) (pods []*v1.Pod) {
	for i := range n {
		p := pod(namespace, fmt.Sprint(i))
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("group")}
		pods = append(pods, p)
	}
	return pods
}

// tryGroup tries the pods of a group in one cycle. Each attempt takes the given time. tryGroup returns the first refusal, or
// nil.
func (b *bench) tryGroup(pods []*v1.Pod, takes time.Duration) *Refusal {
	b.CycleBegan(pods[0].Namespace)
	defer b.CycleEnded()
	for _, p := range pods {
		if _, refusal := b.Admit(b.request(p, "claim-of-"+p.UID)); refusal != nil {
			return refusal
		}
		b.pass(takes)
	}
	return nil
}

// TestGroupsAreTriedAsAWhole checks that the guard refuses a group only at its first pod. If later pods were refused for the
// share, the group could never run while other namespaces wait.
func TestGroupsAreTriedAsAWhole(t *testing.T) {
	b := newBench()
	b.wait(pod("other", "waits"))
	pods := groupOf("a", 20)
	require.Nil(t, b.tryGroup(pods, 100*time.Millisecond))
	require.NotNil(t, b.tryGroup(pods, 0))
	require.Len(t, b.lines.of("a").order, 1, "a group has one place in line")
	b.wait()
	b.Look()
	require.Equal(t, []string{"a/0"}, b.activated)
	b.wait(pod("other", "waits"))
	require.Nil(t, b.tryGroup(pods[1:], 0), "the turn is the group's, whichever pod is first")
}

// TestGroupsWaitWithoutTheirFirstPod checks that a refused group is activated even if the pod that was refused is deleted.
func TestGroupsWaitWithoutTheirFirstPod(t *testing.T) {
	b := newBench()
	b.wait(pod("other", "waits"))
	pods := groupOf("a", 3)
	require.Nil(t, b.tryGroup(pods, time.Second))
	require.NotNil(t, b.tryGroup(pods, 0))
	b.Forget(pods[0])
	b.wait()
	b.Look()
	require.Equal(t, []string{"a/0"}, b.activated, "for the share")

	b = newBench()
	require.Nil(t, b.try(pods[0], 0, errors.New("over budget")))
	require.NotNil(t, b.tryGroup(pods, 0))
	b.Forget(pods[0])
	b.pass(time.Second)
	b.Look()
	require.Equal(t, []string{"a/0"}, b.activated, "for the back-off")
}

// TestNewClaimOfTheSameName checks that a pod with a new claim does not wait for the back-off of a deleted claim of the same
// name.
func TestNewClaimOfTheSameName(t *testing.T) {
	b := newBench()
	p := pod("a", "p")
	attempt := func(claim types.UID) {
		a, refusal := b.Admit(b.request(p, claim))
		require.Nil(t, refusal)
		a.Failed(errors.New("over budget"))
	}
	for range 9 {
		b.pass(5 * time.Minute)
		attempt("heavy")
	}
	require.True(t, b.Gate(b.request(p, "heavy")), "for minutes")
	require.False(t, b.Gate(b.request(p, "new")))
	attempt("new")
	require.True(t, b.Gate(b.request(p, "new")))
	b.pass(time.Second)
	b.Look()
	require.Equal(t, []string{"a/p"}, b.activated)
	require.Empty(t, b.putOff.backingOff)
}
