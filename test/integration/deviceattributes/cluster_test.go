// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

func TestMain(m *testing.M) { env.Main(m) }

const (
	// definition is the CRD.
	definition = "scheduler/crds/celset.dev_deviceattributes.yaml"
	// stockProfile is the profile of a kube-scheduler beside celset-scheduler.
	stockProfile = "kube-scheduler-beside"
)

// scheduler is the process of celset-scheduler. It ends with the tests of the package.
var (
	scheduler *controlplane.Process
	ofPackage testing.TB
)

// cluster is a control plane with celset-scheduler and kube-scheduler. The CRD is installed after celset-scheduler has started.
var cluster = env.Share(func(t testing.TB) *env.Env {
	e := env.Start(t, controlplane.Options{SkipKwok: true, Users: []controlplane.User{env.Scheduler, env.KubeScheduler}},
		controlplane.CelsetScheduler, controlplane.KubeScheduler)
	e.ApplyManifests(t, "scheduler/rbac.yaml")
	ofPackage = t
	startScheduler(e)
	e.StartStock(t, controlplane.SchedulerOptions{
		User: env.KubeScheduler.Name, Args: []string{"--leader-elect-resource-name=" + stockProfile},
		Config: []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: " + stockProfile + "}]"),
	})
	install(t, e)
	return e
})

// install installs the CRD, and returns when the API server serves the kind.
func install(t testing.TB, e *env.Env) {
	t.Helper()
	e.ApplyManifests(t, definition)
	env.Until(t, "the kind is served", func(ctx context.Context) (bool, error) {
		_, err := objects(t, e).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// objects returns a client of DeviceAttributes.
func objects(t testing.TB, e *env.Env) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(e.RESTConfig())
	require.NoError(t, err)
	return client.Resource(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.DeviceAttributesResource))
}

func startScheduler(e *env.Env) {
	scheduler = e.StartScheduler(ofPackage, controlplane.SchedulerOptions{User: env.Scheduler.Name, LeaderElect: true})
}

// lab has nodes with devices whose driver publishes no topology. The devices of a node are in a row, in an order that their names
// don't show.
type lab struct {
	*env.Lab
	driver  string
	objects dynamic.ResourceInterface
}

// positions are the positions of the devices in the row. The first four devices are not in a row.
var positions = []int64{0, 5, 1, 6, 2, 7, 3, 4}

func newLab(t *testing.T, name string, nodes int) *lab {
	t.Helper()
	l := &lab{Lab: cluster(t).NewLab(t, name, nodes)}
	l.driver = l.Family("plain").Driver
	l.objects = objects(t, l.Env)
	l.CreateClass(t, l.driver)
	for _, node := range l.Nodes {
		l.CreateSlice(t, l.slice(node, 1, 0, len(positions)))
	}
	return l
}

// slice returns the only ResourceSlice of a node, with the devices from to to.
func (l *lab) slice(node string, generation int64, from, to int) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d-%d", node, generation, from)},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: l.driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: generation, ResourceSliceCount: 1},
		},
	}
	for i := from; i < to; i++ {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: deviceName(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"pciAddress": {StringValue: ptr.To(address(i))},
		}})
	}
	return slice
}

func deviceName(i int) string { return fmt.Sprintf("plain-%d", i) }
func address(i int) string    { return fmt.Sprintf("0000:%02d:00.0", i) }

// row returns an object with the positions of the devices.
func (l *lab) row(name string) *v1alpha1.DeviceAttributes {
	object := &v1alpha1.DeviceAttributes{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.DeviceAttributesKind},
		ObjectMeta: metav1.ObjectMeta{Name: l.Namespace + "-" + name},
		Spec: v1alpha1.DeviceAttributesSpec{
			Driver: l.driver, Domain: v1alpha1.DefaultAttributesDomain,
			NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{env.LabLabel: l.Namespace}},
			Table:        &v1alpha1.AttributeTable{Key: l.driver + "/pciAddress"},
		},
	}
	for i, position := range positions {
		object.Spec.Table.Rows = append(object.Spec.Table.Rows, v1alpha1.AttributeRow{
			Key: address(i), Values: map[string]resourceapi.DeviceAttribute{"position": {IntValue: ptr.To(position)}},
		})
	}
	return object
}

// create creates an object and deletes it after the test.
func (l *lab) create(t *testing.T, object *v1alpha1.DeviceAttributes) {
	t.Helper()
	_, err := l.objects.Create(t.Context(), toUnstructured(t, object), metav1.CreateOptions{})
	require.NoError(t, err)
	env.CleanUp(t, func(ctx context.Context) error { return l.objects.Delete(ctx, object.Name, metav1.DeleteOptions{}) })
}

// change changes the spec of an object.
func (l *lab) change(t *testing.T, object *v1alpha1.DeviceAttributes, edit func(*v1alpha1.DeviceAttributesSpec)) {
	t.Helper()
	current := l.get(t, object.Name)
	edit(&current.Spec)
	_, err := l.objects.Update(t.Context(), toUnstructured(t, current), metav1.UpdateOptions{})
	require.NoError(t, err)
}

func (l *lab) get(t *testing.T, name string) *v1alpha1.DeviceAttributes {
	t.Helper()
	read, err := l.objects.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	decoded := &v1alpha1.DeviceAttributes{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, decoded))
	return decoded
}

func toUnstructured(t *testing.T, object *v1alpha1.DeviceAttributes) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: content}
}

// counts are the numbers of a status, and the conditions with the status True.
type counts struct {
	Devices, Attributes, UnmatchedRows, FailedExpressions, Conflicts int32
	True                                                             []string
}

// requireStatus waits until the status of an object has the counts for its current generation.
func (l *lab) requireStatus(t *testing.T, object *v1alpha1.DeviceAttributes, want counts) {
	t.Helper()
	env.Eventually(t, "the status of "+object.Name, func(context.Context) (string, error) {
		current := l.get(t, object.Name)
		status, got := current.Status, counts{Devices: current.Status.Devices, Attributes: current.Status.Attributes}
		if status.ObservedGeneration != current.Generation {
			return "it is for an older generation", nil
		}
		if rows := status.UnmatchedRows; rows != nil {
			got.UnmatchedRows = rows.Count
		}
		if failed := status.FailedExpressions; failed != nil {
			got.FailedExpressions = failed.Count
		}
		if conflicts := status.Conflicts; conflicts != nil {
			got.Conflicts = conflicts.Count
		}
		for _, condition := range status.Conditions {
			if condition.Status == metav1.ConditionTrue {
				got.True = append(got.True, condition.Type)
			}
		}
		return cmp.Diff(want, got), nil
	})
}

// inARow requests four devices in a row.
func (l *lab) inARow() []env.Part {
	return []env.Part{env.Request("plain", l.driver, 4), env.Constrained("row", env.Span(v1alpha1.DefaultAttributesDomain, "position", 4))}
}

// withoutPosition requests a device without a position.
func (l *lab) withoutPosition() env.Part {
	const domain = v1alpha1.DefaultAttributesDomain
	return env.Exactly("plain", resourceapi.ExactDeviceRequest{
		DeviceClassName: l.driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		Selectors: []resourceapi.DeviceSelector{env.Selector("!('" + domain + "' in device.attributes) || !has(device.attributes['" + domain + "'].position)")},
	})
}

// requireRow requires that a pod runs with four devices in a row.
func (l *lab) requireRow(t *testing.T, pod string) {
	t.Helper()
	l.RequireRunning(t, pod)
	devices := l.DevicesOf(t, pod)
	require.Len(t, devices, 4)
	least, most := int64(len(positions)), int64(-1)
	for _, device := range devices {
		var i int
		_, err := fmt.Sscanf(device, "plain-%d", &i)
		require.NoError(t, err)
		least, most = min(least, positions[i]), max(most, positions[i])
	}
	require.Equal(t, int64(3), most-least, "positions of %v", devices)
}
