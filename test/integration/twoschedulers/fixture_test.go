// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/guarded"
	"github.com/celset/celset/test/internal/ledger"
	"github.com/celset/celset/test/internal/render"
)

const (
	namespace = metav1.NamespaceDefault
	// perNode is the number of devices that a driver has on each node.
	perNode = 8
	// poolLabel and poolTaint are on nodes that are reserved for pods of celset-scheduler.
	poolLabel, poolTaint = "example.com/pool", "example.com/connected"
)

// cluster is the control plane of one test.
type cluster struct{ *env.Lab }

// start starts a control plane; the API server gets the additional flags. The tests of this package run in parallel, because
// they mostly wait for leases.
func start(t *testing.T, apiServerArgs ...string) *cluster {
	t.Helper()
	t.Parallel()
	return &cluster{&env.Lab{Namespace: namespace, Env: env.Start(t, controlplane.Options{
		SkipKwok: true, SkipControllerManager: true, APIServerArgs: apiServerArgs,
		Users: []controlplane.User{env.Scheduler, env.KubeScheduler, env.Webhook},
	}, controlplane.KubeScheduler, controlplane.CelsetScheduler, guarded.Binary)}}
}

// install applies an overlay, and starts celset-scheduler with the flags of its Deployment. The options can add flags, and can
// replace the connection to the API server.
func (c *cluster) install(t *testing.T, overlay string, options controlplane.SchedulerOptions) *controlplane.Process {
	t.Helper()
	objects, err := render.Kustomization(env.Manifest(t, "overlays", overlay))
	require.NoError(t, err)
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		c.ApplyText(t, string(content))
	}
	config, err := render.Find(objects, "ConfigMap", "celset-scheduler-config")
	require.NoError(t, err)
	content, _, err := unstructured.NestedString(config.Object, "data", "config.yaml")
	require.NoError(t, err)
	if options.Kubeconfig == "" {
		options.User = env.Scheduler.Name
	}
	options.Config, options.Args = []byte(content), append(flags(t, objects), options.Args...)
	return c.StartScheduler(t, options)
}

// flags returns the flags in the rendered Deployment. Path and port are changed for this machine, and leader election is on.
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

// stock starts kube-scheduler with the rights of its own user.
func (c *cluster) stock(t *testing.T) *controlplane.Process {
	t.Helper()
	return c.StartStock(t, controlplane.SchedulerOptions{User: env.KubeScheduler.Name})
}

// holder returns the identity of a lease's holder, or "" if the lease has no holder.
func (c *cluster) holder(ctx context.Context, lease string) string {
	object, err := c.Client().CoordinationV1().Leases("kube-system").Get(ctx, lease, metav1.GetOptions{})
	if err != nil || object.Spec.HolderIdentity == nil {
		return ""
	}
	return *object.Spec.HolderIdentity
}

// follow starts a ledger that records the allocations of all claims.
func (c *cluster) follow(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, _ := c.KeepLedger(t, namespace, false, func(*resourceapi.ResourceClaim) string { return "" })
	return l
}

// nodes creates nodes.
func (c *cluster) nodes(t *testing.T, n int, prefix string, taints ...corev1.Taint) []string {
	t.Helper()
	names, err := controlplane.CreateNodes(t.Context(), c.Client(), n, controlplane.NodeOptions{
		Prefix: prefix, Labels: map[string]string{poolLabel: prefix}, Taints: taints, Static: true,
	})
	require.NoError(t, err)
	return names
}

// ring publishes a ring of devices on each node, and creates a class with the name of the driver.
func (c *cluster) ring(t *testing.T, driver string, nodes ...string) topology.Topology {
	t.Helper()
	ring, err := topology.NewRing(topology.Family{Driver: driver, Prefix: "d"}, perNode)
	require.NoError(t, err)
	c.Publish(t, ring, nodes...)
	c.CreateClass(t, driver)
	return ring
}

// option changes a pod before it is created.
type option func(*corev1.Pod)

// run creates a claim for two devices of a class, and a pod of the profile that uses the claim. If the profile is celset's, the
// devices must be neighbours.
func (c *cluster) run(t *testing.T, name, profile, class string, options ...option) {
	t.Helper()
	parts := []env.Part{env.Request("two", class, 2)}
	if profile == env.CelsetProfile {
		parts = append(parts, env.Constrained("neighbours", env.Contiguous(class, 2)))
	}
	c.runWith(t, name, profile, parts, options...)
}

func (c *cluster) runWith(t *testing.T, name, profile string, parts []env.Part, options ...option) {
	t.Helper()
	c.CreateClaim(t, name, parts...)
	pod := env.Pod(name, profile, name)
	for _, change := range options {
		change(pod)
	}
	c.CreatePodAsIs(t, pod)
}

// requireServed waits until the pods are bound, and returns the devices of each pod. It requires that no device is in two
// claims.
func (c *cluster) requireServed(t *testing.T, pods ...string) map[string]devices {
	t.Helper()
	served, users := map[string]devices{}, map[string]string{}
	for _, name := range pods {
		c.RequireRunning(t, name)
		claim := c.Claim(t, name)
		require.NotNil(t, claim.Status.Allocation, name)
		for _, device := range ledger.DevicesOf(claim) {
			require.NotContains(t, users, device, "allocated to %s and %s", users[device], name)
			users[device] = name
		}
		served[name] = devices{claim.Status.Allocation.Devices.Results[0].Pool, env.DeviceNames(claim)}
	}
	return served
}

// devices are the devices that one claim has on one node. The pool has the name of the node.
type devices struct {
	node  string
	names []string
}

// claims returns the client for claims of the namespace.
func (c *cluster) claims() resourceclient.ResourceClaimInterface {
	return c.Client().ResourceV1().ResourceClaims(namespace)
}
