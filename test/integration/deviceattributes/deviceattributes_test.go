// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// The conditions of an object without problems.
var healthy = []string{wellknown.ConditionAttributesAccepted, wellknown.ConditionAttributesComplete}

// TestPodGetsDevicesOfARow follows a pod that waits for attributes until it runs. The waits of this package are shorter than the
// five minutes after which the scheduler retries pods without a reason.
func TestPodGetsDevicesOfARow(t *testing.T) {
	l := newLab(t, "row", 2)
	l.Run(t, "first", env.CelsetProfile, l.inARow()...)
	l.RequireRefused(t, "first", "no such key: position", v1alpha1.DefaultAttributesDomain)

	row := l.row("row")
	l.create(t, row)
	l.requireRow(t, "first")
	l.requireStatus(t, row, counts{Devices: 16, Attributes: 16, True: healthy})
	env.Eventually(t, "the event of the object", func(ctx context.Context) (string, error) {
		events, err := l.Client().EventsV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for _, event := range events.Items {
			if event.Regarding.Name == row.Name && event.Reason == wellknown.ReasonAttributesAdded && event.Regarding.Kind == v1alpha1.DeviceAttributesKind {
				return "", nil
			}
		}
		return "there is none", nil
	})

	// A pod that needs a device without the attribute shows when the scheduler has noticed the deletion.
	l.Run(t, "without", env.CelsetProfile, l.withoutPosition())
	l.RequireRefused(t, "without")
	require.NoError(t, l.objects.Delete(t.Context(), row.Name, metav1.DeleteOptions{}))
	l.RequireRunning(t, "without")
	l.Run(t, "second", env.CelsetProfile, l.inARow()...)
	l.RequireRefused(t, "second", "no such key: position")
	l.requireRow(t, "first")
}

// TestConflict checks that two objects with different values block each other, and that an equal object does not.
func TestConflict(t *testing.T) {
	l := newLab(t, "conflict", 1)
	row, equal, different := l.row("row"), l.row("equal"), l.row("different")
	l.create(t, row)
	l.create(t, equal)
	l.requireStatus(t, equal, counts{Devices: 8, Attributes: 8, True: healthy})
	value := int64(99)
	different.Spec.Table.Rows = []v1alpha1.AttributeRow{{Key: address(0), Values: map[string]resourceapi.DeviceAttribute{"position": {IntValue: &value}}}}
	l.create(t, different)
	conflicted := append(slices.Clone(healthy), wellknown.ConditionAttributesConflicted)
	l.requireStatus(t, row, counts{Devices: 8, Attributes: 7, Conflicts: 1, True: conflicted})
	l.requireStatus(t, different, counts{Devices: 8, Conflicts: 1, True: conflicted})
	l.Run(t, "pod", env.CelsetProfile, l.inARow()...)
	l.RequireRefused(t, "pod", "no such key: position")
	require.NoError(t, l.objects.Delete(t.Context(), different.Name, metav1.DeleteOptions{}))
	l.requireRow(t, "pod")
	l.requireStatus(t, row, counts{Devices: 8, Attributes: 8, True: healthy})
}

// TestStatusStaysTrue changes the cluster in all ways that concern an object, and checks its status after each change.
func TestStatusStaysTrue(t *testing.T) {
	l := newLab(t, "status", 2)
	row := l.row("row")
	row.Spec.Table.Rows[3].Key = "0000:3:00.0"
	row.Spec.Attributes = []v1alpha1.ComputedAttribute{{Name: "rack", Expression: "node.labels['example.com/rack']"}}
	l.create(t, row)
	accepted := []string{wellknown.ConditionAttributesAccepted}
	l.requireStatus(t, row, counts{Devices: 16, Attributes: 14, UnmatchedRows: 1, FailedExpressions: 16, True: accepted})
	require.Equal(t, []string{"0000:3:00.0"}, l.get(t, row.Name).Status.UnmatchedRows.Keys)

	// A node gets the label.
	_, err := l.Client().CoreV1().Nodes().Patch(t.Context(), l.Nodes[0], types.MergePatchType, []byte(`{"metadata": {"labels": {"example.com/rack": "a"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	l.requireStatus(t, row, counts{Devices: 16, Attributes: 22, UnmatchedRows: 1, FailedExpressions: 8, True: accepted})

	// The misspelt key is corrected.
	l.change(t, row, func(spec *v1alpha1.DeviceAttributesSpec) { spec.Table.Rows[3].Key = address(3) })
	l.requireStatus(t, row, counts{Devices: 16, Attributes: 24, FailedExpressions: 8, True: accepted})

	// A node joins, and its driver publishes devices.
	names, err := controlplane.CreateNodes(t.Context(), l.Client(), 1, controlplane.NodeOptions{
		Prefix: l.Namespace + "-joins", Labels: map[string]string{env.LabLabel: l.Namespace, "example.com/rack": "b"}, Static: true,
	})
	require.NoError(t, err)
	l.CreateSlice(t, l.slice(names[0], 1, 0, 8))
	l.requireStatus(t, row, counts{Devices: 24, Attributes: 40, FailedExpressions: 8, True: accepted})

	// A driver restarts: it publishes a new generation, in two parts, and then deletes the old one.
	slices := l.Client().ResourceV1().ResourceSlices()
	for _, part := range []*resourceapi.ResourceSlice{l.slice(l.Nodes[0], 2, 0, 4), l.slice(l.Nodes[0], 2, 4, 8)} {
		part.Spec.Pool.ResourceSliceCount = 2
		l.CreateSlice(t, part)
	}
	require.NoError(t, slices.Delete(t.Context(), l.slice(l.Nodes[0], 1, 0, 8).Name, metav1.DeleteOptions{}))
	l.requireStatus(t, row, counts{Devices: 24, Attributes: 40, FailedExpressions: 8, True: accepted})
	l.Run(t, "pod", env.CelsetProfile, l.inARow()...)
	l.requireRow(t, "pod")

	// A driver publishes fewer devices.
	require.NoError(t, slices.Delete(t.Context(), l.slice(l.Nodes[1], 1, 0, 8).Name, metav1.DeleteOptions{}))
	l.CreateSlice(t, l.slice(l.Nodes[1], 2, 0, 1))
	l.requireStatus(t, row, counts{Devices: 17, Attributes: 33, FailedExpressions: 1, True: accepted})

	// A node leaves.
	require.NoError(t, l.Client().CoreV1().Nodes().Delete(t.Context(), names[0], metav1.DeleteOptions{}))
	require.NoError(t, slices.Delete(t.Context(), l.slice(names[0], 1, 0, 8).Name, metav1.DeleteOptions{}))
	l.requireStatus(t, row, counts{Devices: 9, Attributes: 17, FailedExpressions: 1, True: accepted})
}

// TestDomainOfADriver checks that an object has no effect while a driver publishes attributes in its domain.
func TestDomainOfADriver(t *testing.T) {
	l := newLab(t, "domain", 1)
	row := l.row("row")
	row.Spec.Domain = "topology." + l.Namespace + ".example.com"
	l.create(t, row)
	l.requireStatus(t, row, counts{Devices: 8, Attributes: 8, True: healthy})
	// Another driver publishes an attribute in the domain.
	other := l.slice(l.Nodes[0], 1, 0, 1)
	other.Name, other.Spec.Driver, other.Spec.Pool.Name = l.Namespace+"-other", "other."+l.Namespace+".example.com", "other"
	other.Spec.Devices[0].Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{resourceapi.QualifiedName(row.Spec.Domain + "/x"): {BoolValue: new(true)}}
	l.CreateSlice(t, other)
	l.requireStatus(t, row, counts{})
	require.NoError(t, l.Client().ResourceV1().ResourceSlices().Delete(t.Context(), other.Name, metav1.DeleteOptions{}))
	l.requireStatus(t, row, counts{Devices: 8, Attributes: 8, True: healthy})
}

// TestStockSchedulerAllocatesNothing checks that a scheduler without celset, which sees no attributes of objects, does not allocate
// claims that need them. celset-scheduler allocates the same claims, with upstream's allocator too.
func TestStockSchedulerAllocatesNothing(t *testing.T) {
	l := newLab(t, "stock", 1)
	row := l.row("row")
	row.Spec.Attributes = []v1alpha1.ComputedAttribute{{Name: "half", Expression: "int(device.name.substring(6)) / 4"}}
	l.create(t, row)
	l.requireStatus(t, row, counts{Devices: 8, Attributes: 16, True: healthy})
	selecting := func(l *lab) env.Part {
		return env.Exactly("plain", resourceapi.ExactDeviceRequest{
			DeviceClassName: l.driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
			Selectors: []resourceapi.DeviceSelector{env.Selector("device.attributes['" + v1alpha1.DefaultAttributesDomain + "'].position == 7")},
		})
	}
	for name, parts := range map[string][]env.Part{
		"row":      l.inARow(),
		"selector": {selecting(l)},
		"match":    {env.Request("plain", l.driver, 2), env.MatchAttribute(v1alpha1.DefaultAttributesDomain + "/half")},
	} {
		l.Run(t, "stock-"+name, stockProfile, parts...)
		l.RequireRefused(t, "stock-"+name)
	}
	l.Run(t, "selector", env.StockProfile, selecting(l))
	l.RequireRunning(t, "selector")
	require.Equal(t, []string{deviceName(5)}, l.DevicesOf(t, "selector"))
	l.Run(t, "match", env.StockProfile, env.Request("plain", l.driver, 2), env.MatchAttribute(v1alpha1.DefaultAttributesDomain+"/half"))
	l.RequireRunning(t, "match")
	require.Len(t, l.DevicesOf(t, "match"), 2)
	l.Run(t, "row", env.CelsetProfile, l.inARow()...)
	l.requireRow(t, "row")
	for _, name := range []string{"row", "selector", "match"} {
		pod := l.Pod(t, "stock-"+name)
		require.Empty(t, pod.Spec.NodeName)
		for _, claim := range l.ClaimsOf(t, pod) {
			require.Nil(t, claim.Status.Allocation)
		}
	}
}

// TestRestart checks that a scheduler knows the attributes from its first cycle on: a pod that selects devices without an attribute
// must not get devices that have the attribute.
func TestRestart(t *testing.T) {
	l := newLab(t, "restart", 1)
	row := l.row("row")
	l.create(t, row)
	l.requireStatus(t, row, counts{Devices: 8, Attributes: 8, True: healthy})
	scheduler.Kill()
	l.Run(t, "row", env.CelsetProfile, l.inARow()...)
	l.Run(t, "without", env.CelsetProfile, l.withoutPosition())
	startScheduler(l.Env)
	l.requireRow(t, "row")
	l.RequireRefused(t, "without")
}

// TestKindIsDeleted deletes the CRD, which deletes all objects, and installs it again.
func TestKindIsDeleted(t *testing.T) {
	l := newLab(t, "kind", 2)
	l.create(t, l.row("row"))
	l.Run(t, "first", env.CelsetProfile, l.inARow()...)
	l.requireRow(t, "first")
	l.Run(t, "without", env.CelsetProfile, l.withoutPosition())
	l.RequireRefused(t, "without")
	_, err := l.Kubectl(t, "", "delete", "-f", env.Manifest(t, definition), "--wait")
	require.NoError(t, err)
	l.RequireRunning(t, "without")
	l.Run(t, "second", env.CelsetProfile, l.inARow()...)
	l.RequireRefused(t, "second", "no such key: position")
	install(t, l.Env)
	l.create(t, l.row("row"))
	l.requireRow(t, "second")
	l.requireRow(t, "first")
}
