// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/topology"
)

const (
	account   = "system:serviceaccount:kube-system:celset-scheduler"
	profile   = "celset-scheduler"
	namespace = metav1.NamespaceDefault
	driver    = "mla.example.com"

	// patience is less than the time after which a scheduler tries pods again that nothing
	// has happened for.
	patience = 3 * time.Minute
)

type cluster struct {
	*controlplane.ControlPlane
}

// start runs a control plane that knows PodGroups, and celset-scheduler with the configuration and
// under the rights in manifests/scheduler.
func start(t *testing.T) *cluster {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{
		DataDir: t.TempDir(), Progress: t.Output(), SkipKwok: true,
		FeatureGates:  map[string]bool{"GenericWorkload": true},
		APIServerArgs: []string{"--runtime-config=" + schedulingv1beta1.SchemeGroupVersion.String() + "=true"},
		Users:         []controlplane.User{{Name: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}}},
	})
	require.NoError(t, err)
	t.Cleanup(cp.Stop)
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	manifests := filepath.Join(root, "manifests", "scheduler")
	rights, err := os.ReadFile(filepath.Join(manifests, "rbac.yaml"))
	require.NoError(t, err)
	_, err = controlplane.Apply(t.Context(), cp.RESTConfig(), rights, controlplane.ApplyOptions{})
	require.NoError(t, err)
	_, err = cp.StartScheduler(t.Context(), controlplane.SchedulerOptions{
		ConfigFile: filepath.Join(manifests, "config.yaml"), User: account,
		FeatureGates: map[string]bool{v1alpha1.FeatureGate: true, "GenericWorkload": true},
	})
	require.NoError(t, err)
	return &cluster{cp}
}

// rings creates nodes, each with a ring of eight devices, and the class of these.
func (c *cluster) rings(t *testing.T, n int) {
	t.Helper()
	nodes, err := controlplane.CreateNodes(t.Context(), c.Client(), n, controlplane.NodeOptions{Prefix: "node", Static: true})
	require.NoError(t, err)
	ring, err := topology.NewRing(topology.Family{Driver: driver, Prefix: "mla"}, 8)
	require.NoError(t, err)
	for _, node := range nodes {
		slices, err := ring.ResourceSlices(node)
		require.NoError(t, err)
		for _, slice := range slices {
			_, err := c.Client().ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}}}
	_, err = c.Client().ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
	require.NoError(t, err)
}

// gang creates a PodGroup and its pods, each with a claim for n devices in a row. It returns the
// names of the pods, which are those of their claims.
func (c *cluster) gang(t *testing.T, name string, pods, n int) []string {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(pods)}},
	}}
	_, err := c.Client().SchedulingV1beta1().PodGroups(namespace).Create(t.Context(), group, metav1.CreateOptions{})
	require.NoError(t, err)
	var members []string
	for i := range pods {
		member := fmt.Sprintf("%s-%d", name, i)
		c.createClaim(t, inARow(member, n))
		pod := podOf(member)
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
		c.createPod(t, pod)
		members = append(members, member)
	}
	return members
}

// single creates a pod in no group, with a claim for n devices in a row.
func (c *cluster) single(t *testing.T, name string, n int) {
	t.Helper()
	c.createClaim(t, inARow(name, n))
	c.createPod(t, podOf(name))
}

// occupy has a pod get one device by its index.
func (c *cluster) occupy(t *testing.T, name string, index int) {
	t.Helper()
	claim := claimOf(name, 1)
	claim.Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: fmt.Sprintf("device.attributes['%s'].index == %d", driver, index)}}}
	c.createClaim(t, claim)
	c.createPod(t, podOf(name))
}

func claimOf(name string, n int) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "mla", Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(n),
	}}}
	return claim
}

func inARow(name string, n int) *resourceapi.ResourceClaim {
	claim := claimOf(name, n)
	indices := fmt.Sprintf("devices.map(d, d.attributes['%s'].index)", driver)
	expression := fmt.Sprintf("%[1]s.max() - %[1]s.min() == %d", indices, n-1)
	claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/row"))}}
	claim.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
		Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "celset.dev", Parameters: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "row", "expression": %q}`, expression)}},
	}}}
	return claim
}

func podOf(claim string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: claim}, Spec: corev1.PodSpec{
		SchedulerName:  profile,
		ResourceClaims: []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &claim}},
		Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{
			Claims: []corev1.ResourceClaim{{Name: "devices"}},
		}}},
	}}
}

func (c *cluster) createClaim(t *testing.T, claim *resourceapi.ResourceClaim) {
	t.Helper()
	_, err := c.Client().ResourceV1().ResourceClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (c *cluster) createPod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	_, err := c.Client().CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

// delete ends a pod as a node would, and its claim is free for others then.
func (c *cluster) delete(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, c.Client().CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	require.NoError(t, c.Client().ResourceV1().ResourceClaims(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// place is where a pod is, and on which devices, by their index.
type place struct {
	node    string
	devices []string
}

// of is empty as long as the pod has no node, and its claim no devices.
func (c *cluster) of(ctx context.Context, t *testing.T, name string) place {
	t.Helper()
	pod, err := c.Client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	claim, err := c.Client().ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	result := place{node: pod.Spec.NodeName}
	if claim.Status.Allocation != nil {
		for _, device := range claim.Status.Allocation.Devices.Results {
			result.devices = append(result.devices, device.Device)
		}
	}
	slices.Sort(result.devices)
	return result
}

// served waits until the pods are bound, and returns where.
func (c *cluster) served(t *testing.T, names ...string) map[string]place {
	t.Helper()
	result := map[string]place{}
	c.eventually(t, fmt.Sprintf("%v are bound", names), func(ctx context.Context) bool {
		for _, name := range names {
			result[name] = c.of(ctx, t, name)
		}
		return !slices.ContainsFunc(names, func(name string) bool { return result[name].node == "" })
	})
	return result
}

// requireRefused waits until the scheduler has told of one of the pods that it can't be scheduled,
// and then requires that none of them has a node or devices.
func (c *cluster) requireRefused(t *testing.T, names ...string) {
	t.Helper()
	c.eventually(t, fmt.Sprintf("%v are refused", names), func(ctx context.Context) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			pod, err := c.Client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			require.NoError(t, err)
			return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
				return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse
			})
		})
	})
	c.requireNothing(t, names...)
}

// requireNothing requires that none of the pods has a node or devices.
func (c *cluster) requireNothing(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		require.Equal(t, place{}, c.of(t.Context(), t, name), name)
	}
}

func (c *cluster) eventually(t *testing.T, what string, condition func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return condition(ctx), nil
	})
	require.NoError(t, err, what)
}
