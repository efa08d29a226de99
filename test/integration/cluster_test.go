// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// cluster is the control plane that all tests of the package share.
var cluster struct {
	*env.Env
	scheduler *controlplane.Process
}

func TestMain(m *testing.M) { env.Main(m, startCluster) }

// startCluster starts a control plane and a scheduler, as an administrator would with the manifests: it creates the RBAC
// objects, and the scheduler runs as their service account.
func startCluster(t testing.TB) {
	cluster.Env = env.Start(t, controlplane.Options{FeatureGates: minor.ClusterGates(), Users: []controlplane.User{env.Scheduler}}, controlplane.Kubectl)
	cluster.ApplyManifests(t, "scheduler/rbac.yaml")
	config, err := sharedSchedulerConfig(t)
	require.NoError(t, err)
	cluster.scheduler = startScheduler(t, "", config)
}

// startScheduler starts another scheduler with the configuration, and with the RBAC rights in the manifests.
func startScheduler(t testing.TB, name string, config []byte) *controlplane.Process {
	t.Helper()
	return cluster.StartScheduler(t, controlplane.SchedulerOptions{
		Name: name, Config: config, User: env.Scheduler.Name, FeatureGates: minor.SchedulerGates(map[string]bool{"CelsetDevicePreemption": true}),
	})
}

func client() kubernetes.Interface { return cluster.Client() }

// A lab is the environment of one test.
type lab struct{ *env.Lab }

func newLab(t testing.TB, name string, n int) *lab {
	t.Helper()
	return &lab{cluster.NewLab(t, name, n)}
}

func newRing(t testing.TB, family topology.Family, n int) topology.Topology {
	t.Helper()
	ring, err := topology.NewRing(family, n)
	require.NoError(t, err)
	return ring
}

// prefer returns a part of a claim: a preference.
func prefer(name, expression string) env.Part {
	return env.Configure(env.Parameters(map[string]string{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.PreferenceKind, "name": name, "type": "Expression", "expression": expression,
	}))
}

// firstAvailable returns a request with alternatives, the preferred one first.
func firstAvailable(name string, alternatives ...resourceapi.DeviceSubRequest) env.Part {
	return func(claim *resourceapi.DeviceClaim) {
		claim.Requests = append(claim.Requests, resourceapi.DeviceRequest{Name: name, FirstAvailable: alternatives})
	}
}

func alternative(name, class string, count int64) resourceapi.DeviceSubRequest {
	return resourceapi.DeviceSubRequest{
		Name: name, DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}
}

// allocate writes an allocation with devices of a node into a claim, without a scheduler. The claim has one request. The
// allocation has a timestamp, as schedulers write it. Without it, a scheduler with binding conditions would add one for the
// first pod, and the API server would reject this change.
func (l *lab) allocate(t testing.TB, claim *resourceapi.ResourceClaim, driver, node string, devices ...string) *resourceapi.ResourceClaim {
	t.Helper()
	claims := client().ResourceV1().ResourceClaims(l.Namespace)
	claim.Finalizers = append(claim.Finalizers, resourceapi.Finalizer)
	claim, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	claim.Status.Allocation = &resourceapi.AllocationResult{AllocationTimestamp: ptr.To(metav1.Now()), NodeSelector: onlyNode(node)}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: claim.Spec.Devices.Requests[0].Name, Driver: driver, Pool: node, Device: device,
		})
	}
	claim, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	return claim
}

// onlyNode returns a node selector that matches only the node.
func onlyNode(node string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
		Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
	}}}}}
}

func (l *lab) addToClass(t testing.TB, name string, configuration resourceapi.DeviceConfiguration) {
	t.Helper()
	classes := client().ResourceV1().DeviceClasses()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		class, err := classes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: configuration})
		_, err = classes.Update(t.Context(), class, metav1.UpdateOptions{})
		return err
	}))
}
