// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

func TestMain(m *testing.M) { env.Main(m, env.NoLeaks) }

// tenant may read one namespace. stranger may read nothing.
const tenant, stranger = "tenant", "stranger"

// cluster is an API server with all kinds, and without controllers.
var cluster = env.Share(func(t testing.TB) *env.Hub {
	gates, args := minor.ClusterGates(), []string(nil)
	if hasGroups {
		gates = maps.Clone(gates)
		gates["GenericWorkload"] = true
		args = []string{fmt.Sprintf("--runtime-config=%s=true", schedulingapi.SchemeGroupVersion)}
	}
	hub := env.StartHub(t, controlplane.Options{FeatureGates: gates, APIServerArgs: args, Users: []controlplane.User{{Name: tenant}, {Name: stranger}}})
	hub.ApplyManifests(t, "scheduler/crds/celset.dev_deviceattributes.yaml")
	env.Until(t, "DeviceAttributes are served", func(context.Context) (bool, error) {
		list, err := hub.Client().Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && len(list.APIResources) > 0, err
	})
	return hub
})

// hasGroups is set if the API server has PodGroups in the version that is read.
var hasGroups = minor.Knows("TopologyAwareWorkloadScheduling")

const driver = "gpu.example.com"

func nodeOf(name string) *corev1.Node {
	amounts := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// sliceOf returns a ResourceSlice with devices for a node.
func sliceOf(node string, devices int) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
			Name:       fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: ptr.To(int64(i))}},
			Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	return slice
}

func classOf(name string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: env.ClassOf(driver)}
}

func claimSpec(count int64) resourceapi.ResourceClaimSpec {
	return resourceapi.ResourceClaimSpec{Devices: env.Claim("", env.Request("gpus", driver, count)).Spec.Devices}
}

// namespace creates a namespace for a test.
func namespace(t *testing.T, hub *env.Hub, name string) string {
	t.Helper()
	return env.Create(t, hub.Client().CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}).Name
}

func requireNoError(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}
