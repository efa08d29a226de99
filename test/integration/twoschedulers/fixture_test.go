// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/guarded"
	"github.com/celset/celset/internal/testing/render"
)

const (
	// account is whom the overlays are about.
	account = "system:serviceaccount:kube-system:celset-scheduler"
	// stock is the user that kube-scheduler is in every cluster.
	stock = "system:kube-scheduler"

	stockProfile  = "default-scheduler"
	celsetProfile = "celset-scheduler"

	namespace = metav1.NamespaceDefault

	topologyDriver = "celset-topology-driver"

	// patience is far more than it takes, and less than the time after which pods
	// are tried again that nothing has happened for.
	patience = 3 * time.Minute
)

// cluster is the control plane of one test.
type cluster struct {
	*controlplane.ControlPlane
}

// start starts a control plane, with further flags of the API server. Tests run beside each other: most
// of their time they wait for leases.
func start(t *testing.T, apiServerArgs ...string) *cluster {
	t.Helper()
	t.Parallel()
	// Whoever names the directory of the binaries has built them.
	prebuilt := os.Getenv(controlplane.BinDirEnv) != ""
	if !prebuilt {
		_, err := controlplane.Build(t.Context(), "", t.Output(), controlplane.KubeScheduler, controlplane.CelsetScheduler, topologyDriver, guarded.Binary)
		require.NoError(t, err)
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{
		DataDir: t.TempDir(), Progress: t.Output(), SkipKwok: true, SkipControllerManager: true, Prebuilt: prebuilt, APIServerArgs: apiServerArgs,
		Users: []controlplane.User{
			{Name: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}},
			{Name: stock},
			guarded.User(),
		},
	})
	require.NoError(t, err)
	t.Cleanup(cp.Stop)
	return &cluster{cp}
}

// startStock starts kube-scheduler as in any cluster. It does not find out by itself that the
// API server is older.
func (c *cluster) startStock(t *testing.T) *controlplane.Process {
	t.Helper()
	return c.startStockWith(t, controlplane.SchedulerOptions{User: stock})
}

// startStockWith starts it with a way to the API server.
func (c *cluster) startStockWith(t *testing.T, options controlplane.SchedulerOptions) *controlplane.Process {
	t.Helper()
	args := []string{"--leader-elect=true"}
	if older := os.Getenv(controlplane.KubernetesEnv); older != "" {
		args = append(args, "--emulated-version="+older)
	}
	options.Binary, options.Args = c.Binary(controlplane.KubeScheduler), args
	p, err := c.StartScheduler(t.Context(), options)
	require.NoError(t, err)
	return p
}

// install applies an overlay and starts celset-scheduler as its Deployment would.
func (c *cluster) install(t *testing.T, overlay string) *controlplane.Process {
	t.Helper()
	return c.installWith(t, overlay, controlplane.SchedulerOptions{User: account})
}

// installWith does it with a way to the API server, and further flags.
func (c *cluster) installWith(t *testing.T, overlay string, options controlplane.SchedulerOptions) *controlplane.Process {
	t.Helper()
	objects, err := render.Kustomization(filepath.Join("..", "..", "..", "manifests", "overlays", overlay))
	require.NoError(t, err)
	c.apply(t, objects...)
	options.Config, options.Args = configuration(t, objects), append(flags(t, objects), options.Args...)
	p, err := c.StartScheduler(t.Context(), options)
	require.NoError(t, err)
	return p
}

// apply stores objects.
func (c *cluster) apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		_, err = controlplane.Apply(t.Context(), c.RESTConfig(), content, controlplane.ApplyOptions{})
		require.NoError(t, err)
	}
}

// configuration is what is in the rendered ConfigMap.
func configuration(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	object, err := render.Find(objects, "ConfigMap", "celset-scheduler-config")
	require.NoError(t, err)
	content, found, err := unstructured.NestedString(object.Object, "data", "config.yaml")
	require.NoError(t, err)
	require.True(t, found)
	return []byte(content)
}

// flags are those of the rendered Deployment, but for the path and the port, which are
// this machine's. The control plane elects leaders only if it is told to.
func flags(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	deployment, err := render.Find(objects, "Deployment", "celset-scheduler")
	require.NoError(t, err)
	args, err := render.Args(deployment)
	require.NoError(t, err)
	result := []string{"--leader-elect=true"}
	for _, arg := range args {
		if !strings.HasPrefix(arg, "--config=") && !strings.HasPrefix(arg, "--secure-port=") {
			result = append(result, arg)
		}
	}
	require.Len(t, result, len(args)-1)
	return result
}

// holder is who has a lease, "" for nobody.
func (c *cluster) holder(ctx context.Context, lease string) string {
	object, err := c.Client().CoordinationV1().Leases("kube-system").Get(ctx, lease, metav1.GetOptions{})
	if err != nil || object.Spec.HolderIdentity == nil {
		return ""
	}
	return *object.Spec.HolderIdentity
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, condition)
	require.NoError(t, err, what)
}

// run creates a claim for two devices of a class, and a pod of the profile that uses it.
func (c *cluster) run(t *testing.T, name, profile, class string, options ...func(*corev1.Pod, *resourceapi.ResourceClaim)) {
	t.Helper()
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "two", Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 2,
	}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName:  profile,
		ResourceClaims: []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &name}},
		Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{
			Claims: []corev1.ResourceClaim{{Name: "devices"}},
		}}},
	}}
	for _, option := range options {
		option(pod, claim)
	}
	_, err := c.Client().ResourceV1().ResourceClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.Client().CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

// pod reads a pod.
func (c *cluster) pod(ctx context.Context, t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod, err := c.Client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	return pod
}

// requireServed waits until the pods are bound, and returns the devices of each. No
// device is in two claims.
func (c *cluster) requireServed(t *testing.T, pods ...string) map[string]devices {
	t.Helper()
	served, users := map[string]devices{}, map[string]string{}
	for _, name := range pods {
		eventually(t, name+" is bound", func(ctx context.Context) (bool, error) { return c.pod(ctx, t, name).Spec.NodeName != "", nil })
		claim, err := c.Client().ResourceV1().ResourceClaims(namespace).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.NotNil(t, claim.Status.Allocation, name)
		for _, result := range claim.Status.Allocation.Devices.Results {
			device := result.Driver + "/" + result.Pool + "/" + result.Device
			require.NotContains(t, users, device, "allocated to %s and %s", users[device], name)
			users[device] = name
		}
		served[name] = claim.Status.Allocation.Devices.Results
	}
	return served
}

// devices are those of one claim.
type devices []resourceapi.DeviceRequestAllocationResult

// node is where they are: pools have the names of nodes.
func (d devices) node() string { return d[0].Pool }

// names are those that they have in their pool.
func (d devices) names() []string {
	var names []string
	for _, result := range d {
		names = append(names, result.Device)
	}
	return names
}

// requireRefused waits until the pod's condition says why it can't be scheduled.
func (c *cluster) requireRefused(t *testing.T, name, reason string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is refused: %s", name, reason), func(ctx context.Context) (bool, error) {
		for _, condition := range c.pod(ctx, t, name).Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && strings.Contains(condition.Message, reason) {
				return true, nil
			}
		}
		return false, nil
	})
	claim, err := c.Client().ResourceV1().ResourceClaims(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, claim.Status.Allocation)
}

// requireNothingForbidden reads the log of a scheduler that ran.
func requireNothingForbidden(t *testing.T, p *controlplane.Process) {
	t.Helper()
	log, err := os.ReadFile(p.LogFile())
	require.NoError(t, err)
	require.NotContains(t, string(log), "forbidden", "the overlay gives all rights that it takes")
	require.NotEmpty(t, log)
}
