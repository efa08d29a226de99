// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/cmd/kubectl-celset/preempt"
)

// nominate has a pod wait for devices of a node.
func nominate(p *corev1.Pod, node string) *corev1.Pod {
	p.Status.NominatedNodeName = node
	return p
}

// held are the devices that are held for pods, by name.
func held(result *preempt.Result) map[string][]string {
	all := map[string][]string{}
	for _, hold := range result.Holds {
		all[hold.Pod] = nil
		for _, c := range hold.Claims {
			for _, device := range c.Devices {
				all[hold.Pod] = append(all[hold.Pod], device.Device)
			}
		}
	}
	return all
}

// TestWhatIsHeld: the most important first, with the devices of pods that are ending, and not from pods of
// a higher priority.
func TestWhatIsHeld(t *testing.T) {
	objects := fleet("node")
	running(objects, "ending", 10, "node", 0).DeletionTimestamp = &metav1.Time{}
	running(objects, "batch", 10, "node", 1)
	nominate(waiting(objects, "second", 500, 1), "node")
	nominate(waiting(objects, "first", 600, 2), "node")
	nominate(waiting(objects, "foreign", 700, 2), "node").Spec.SchedulerName = "another"
	waiting(objects, "train", 500, 1)
	waiting(objects, "urgent", 900, 3)

	result := run(t, objects, "train")
	require.Equal(t, map[string][]string{"ns/first": {"0", "2"}, "ns/second": {"3"}}, held(result))
	require.Equal(t, "ns/first", result.Holds[0].Pod)
	require.Equal(t, []string{"node: ns/batch"}, victims(result), "what ends has been promised")
	require.Equal(t, "1", result.Candidates[0].Claims[0].Devices[0].Device)

	require.Equal(t, []string{"node: ns/ending"}, victims(run(t, objects, "urgent")))
	require.Equal(t, "ns/second", run(t, objects, "second").Holds[1].Pod)
}

// TestHeldIsInTheWay of a pod of the same priority.
func TestHeldIsInTheWay(t *testing.T) {
	objects := fleet("node")
	running(objects, "batch", 10, "node", 0)
	nominate(waiting(objects, "first", 500, 1), "node")
	waiting(objects, "train", 500, perNode)
	require.Equal(t, map[string]string{"": "probably held for pod ns/first, which has priority 500"}, why(t, run(t, objects, "train")))
}

// TestNotEvictedTwice: as long as those are ending who were evicted for a pod, it evicts nobody else.
func TestNotEvictedTwice(t *testing.T) {
	objects := fleet("node")
	ending := running(objects, "ending", 10, "node", 0)
	running(objects, "batch", 10, "node", 1)
	nominate(waiting(objects, "train", 500, 3), "node")
	require.Empty(t, run(t, objects, "train").Forbidden)
	ending.DeletionTimestamp = &metav1.Time{}
	require.Empty(t, run(t, objects, "train").Forbidden, "somebody deleted it")
	ending.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
	result := run(t, objects, "train")
	require.Equal(t, "the pod is nominated to node node, where pods that were evicted are ending", result.Forbidden)
	require.False(t, result.Helps())
	require.Equal(t, map[string][]string{"ns/train": {"0", "2", "3"}}, held(result))
}

// TestHoldsThatAreNotKnown are told of, and hold nothing.
func TestHoldsThatAreNotKnown(t *testing.T) {
	objects := fleet("node")
	running(objects, "batch", 10, "node", 0)
	nominate(pod(objects, "lost", 700, "nothing"), "node")
	nominate(waiting(objects, "far", 600, 1), "elsewhere")
	waiting(objects, "train", 500, perNode)
	result := run(t, objects, "train")
	require.Len(t, result.Holds, 2)
	require.Equal(t, `pod ns/lost: there is no ResourceClaim "nothing"`, result.Holds[0].Unknown)
	require.Equal(t, "the node is not known", result.Holds[1].Unknown)
	require.Equal(t, []string{"node: ns/batch"}, victims(result))
}

// TestClaimsFromFiles have no UIDs.
func TestClaimsFromFiles(t *testing.T) {
	objects := fleet("node")
	waiting(objects, "train", 1000, perNode)
	running(objects, "a", 10, "node", 0)
	running(objects, "b", 10, "node", 1)
	for _, c := range objects.Claims {
		c.UID = ""
	}
	require.Equal(t, []string{"node: ns/a ns/b"}, victims(run(t, objects, "train")))
}
