// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/env"
)

// broken is a lab whose pods all fit. The test breaks objects that the pods need, and repairs them.
type broken struct {
	*lab
	driver string
	random *rand.Rand
	made   int
}

// ways returns the ways to break an object. Each function breaks an object and returns a function that repairs it.
func (b *broken) ways() map[string]func(t *testing.T) (mend func(t *testing.T)) {
	class := func(change func(*resourceapi.DeviceClassSpec)) func(t *testing.T) func(t *testing.T) {
		return func(t *testing.T) func(t *testing.T) {
			before := b.changeClass(t, change)
			return func(t *testing.T) { b.changeClass(t, func(spec *resourceapi.DeviceClassSpec) { *spec = before }) }
		}
	}
	return map[string]func(t *testing.T) func(t *testing.T){
		"a constraint that nothing satisfies": class(func(spec *resourceapi.DeviceClassSpec) { spec.Config = row("false") }),
		"a constraint that fails": class(func(spec *resourceapi.DeviceClassSpec) {
			spec.Config = row("devices[0].attributes['x.example.com'].y == 1")
		}),
		"no constraint":                   class(func(spec *resourceapi.DeviceClassSpec) { spec.Config = nil }),
		"a selector that selects nothing": class(func(spec *resourceapi.DeviceClassSpec) { spec.Selectors[0] = env.Selector("false") }),
		"a node without devices":          b.withoutDevices,
		"a node that takes no pods":       b.cordoned,
		"tainted devices":                 b.tainted,
		"a device in use":                 b.inUse,
	}
}

// inARow is the number of devices of each pod.
const inARow = 4

// row returns the configuration of a class: the definition of the constraint to which the claims refer.
func row(expression string) []resourceapi.DeviceClassConfiguration {
	return []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: env.Definition("row", expression)}}
}

// changeClass changes the spec of the class, and returns the former spec.
func (b *broken) changeClass(t *testing.T, change func(*resourceapi.DeviceClassSpec)) (before resourceapi.DeviceClassSpec) {
	t.Helper()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := client().ResourceV1().DeviceClasses().Get(t.Context(), b.driver, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before = *object.Spec.DeepCopy()
		change(&object.Spec)
		_, err = client().ResourceV1().DeviceClasses().Update(t.Context(), object, metav1.UpdateOptions{})
		return err
	}))
	return before
}

func (b *broken) anyNode() string { return b.Nodes[b.random.IntN(len(b.Nodes))] }

func (b *broken) slicesOf(t *testing.T, node string) []resourceapi.ResourceSlice {
	t.Helper()
	list, err := client().ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorNodeName + "=" + node})
	require.NoError(t, err)
	return list.Items
}

func (b *broken) withoutDevices(t *testing.T) func(t *testing.T) {
	node := b.anyNode()
	gone := b.slicesOf(t, node)
	for _, slice := range gone {
		require.NoError(t, client().ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}))
	}
	return func(t *testing.T) {
		for _, slice := range gone {
			slice.ResourceVersion, slice.UID = "", ""
			cluster.CreateSlice(t, &slice)
		}
	}
}

func (b *broken) cordoned(t *testing.T) func(t *testing.T) {
	node := b.anyNode()
	set := func(t *testing.T, unschedulable bool) {
		t.Helper()
		require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
			object, err := client().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			object.Spec.Unschedulable = unschedulable
			_, err = client().CoreV1().Nodes().Update(t.Context(), object, metav1.UpdateOptions{})
			return err
		}))
	}
	set(t, true)
	return func(t *testing.T) { set(t, false) }
}

func (b *broken) tainted(t *testing.T) func(t *testing.T) {
	node := b.anyNode()
	set := func(t *testing.T, taints ...resourceapi.DeviceTaint) {
		t.Helper()
		// If another way has deleted the slices, there is no device to taint.
		for _, slice := range b.slicesOf(t, node) {
			slice.Spec.Pool.Generation++
			for i := range slice.Spec.Devices {
				slice.Spec.Devices[i].Taints = taints
			}
			_, err := client().ResourceV1().ResourceSlices().Update(t.Context(), &slice, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
	}
	set(t, resourceapi.DeviceTaint{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoSchedule})
	return func(t *testing.T) { set(t) }
}

// inUse allocates inARow devices to another pod. A smaller number would leave devices that are not in a row.
func (b *broken) inUse(t *testing.T) func(t *testing.T) {
	b.made++
	name := fmt.Sprint("user-", b.made)
	b.CreateClaim(t, name, env.Request("mla", b.driver, inARow), env.Constrained("own", env.Contiguous(b.driver, inARow)))
	b.CreatePodOn(t, b.anyNode(), name, env.CelsetProfile, name)
	return func(t *testing.T) {
		b.DeletePod(t, name)
		require.NoError(t, client().ResourceV1().ResourceClaims(b.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
}

// TestPodsAreScheduledWhenAllIsMended breaks random objects so that pods can't be scheduled, and repairs them in random order.
// After that, all pods that fit must run soon. The scheduler's flush of unschedulable pods comes only after five minutes, so it
// can't be the cause.
func TestPodsAreScheduledWhenAllIsMended(t *testing.T) {
	const perNode = 2 * inARow
	b := &broken{lab: newLab(t, "mended", 3)}
	b.random = rand.New(rand.NewPCG(cases.Seed(), 1))
	b.driver = b.Family("mla").Driver
	b.Ring(t, perNode, env.Definition("row", env.Contiguous(b.driver, inARow)))
	for round := range cases.Of(4, 12) {
		ways := b.ways()
		names := slices.Sorted(maps.Keys(ways))
		b.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:1+b.random.IntN(4)]
		var mend []func(*testing.T)
		for _, name := range names {
			mend = append(mend, ways[name](t))
		}
		var pods []string
		for i := range len(b.Nodes) * perNode / inARow {
			name := fmt.Sprintf("pod-%d-%d", round, i)
			pods = append(pods, name)
			b.Run(t, name, env.CelsetProfile, env.Request("mla", b.driver, inARow), env.Refer("row"))
		}
		time.Sleep(time.Duration(b.random.IntN(1500)) * time.Millisecond)
		// Repair in reverse order, because two ways may have changed the same object.
		slices.Reverse(mend)
		for _, mend := range mend {
			mend(t)
			time.Sleep(time.Duration(b.random.IntN(300)) * time.Millisecond)
		}
		began := time.Now()
		env.Eventually(t, fmt.Sprintf("all pods run, after %s", strings.Join(names, ", ")), func(ctx context.Context) (string, error) {
			var waiting []string
			for _, name := range pods {
				pod, err := client().CoreV1().Pods(b.Namespace).Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return "", err
				}
				if pod.Status.Phase != corev1.PodRunning {
					waiting = append(waiting, name)
				}
			}
			return strings.Join(waiting, ", "), nil
		})
		t.Logf("%s: all run after %v", strings.Join(names, ", "), time.Since(began).Round(10*time.Millisecond))
		for _, name := range pods {
			b.DeletePod(t, name)
			require.NoError(t, client().ResourceV1().ResourceClaims(b.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
	}
}
