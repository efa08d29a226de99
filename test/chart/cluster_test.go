// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chart

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/helm"
	"github.com/celset/celset/internal/testing/podprocess"
)

const (
	namespace = metav1.NamespaceDefault
	// releaseName is how helm calls what is installed.
	releaseName = "celset"
	// system is the namespace of what is no scheduler.
	system = "celset-system"
	// stock is the user that kube-scheduler is in every cluster.
	stock = "system:kube-scheduler"
	// ciEnv makes it a failure if the tests can't run.
	ciEnv = "CI"
	// patience is far more than anything takes, on a machine that has much else to do too.
	patience = 5 * time.Minute
)

// programs are what the chart has pods of.
var programs = []string{"celset-scheduler", "celset-placement", "celset-webhook", "celset-topology-driver"}

// cluster is a control plane with two control plane nodes and a worker, and with kube-scheduler.
type cluster struct {
	*controlplane.ControlPlane
	runner *podprocess.Runner
	// logsRead is how many logs of the runner were looked into.
	logsRead int
	stock    *controlplane.Process
}

func start(t *testing.T) *cluster {
	t.Helper()
	requireAvailable(t, podprocess.Unavailable())
	// Whoever names the directory of the binaries has built them.
	prebuilt := os.Getenv(controlplane.BinDirEnv) != ""
	if !prebuilt {
		_, err := controlplane.Build(t.Context(), "", t.Output(), append([]string{controlplane.KubeScheduler, controlplane.Runc, controlplane.NodeInit}, programs...)...)
		require.NoError(t, err)
	}
	// Programs are ended before the API server, when the context of the test has ended already.
	ctx := context.WithoutCancel(t.Context())
	cp, err := controlplane.Start(ctx, controlplane.Options{
		DataDir: t.TempDir(), Progress: t.Output(), SkipKwok: true, Prebuilt: prebuilt, ServiceAccountAdmission: true,
		APIServerArgs: []string{podprocess.ServiceAddresses}, Users: []controlplane.User{{Name: stock}},
	})
	require.NoError(t, err)
	t.Cleanup(cp.Stop)
	c := &cluster{ControlPlane: cp}

	const controlPlaneLabel = "node-role.kubernetes.io/control-plane"
	nodes, err := controlplane.CreateNodes(ctx, cp.Client(), 2, controlplane.NodeOptions{
		Prefix: "control-plane", Static: true, Labels: map[string]string{controlPlaneLabel: ""},
		Taints: []corev1.Taint{{Key: controlPlaneLabel, Effect: corev1.TaintEffectNoSchedule}},
	})
	require.NoError(t, err)
	workers, err := controlplane.CreateNodes(ctx, cp.Client(), 1, controlplane.NodeOptions{
		Prefix: "worker", Static: true, Labels: map[string]string{"celset.dev/topology": "ring"},
	})
	require.NoError(t, err)
	c.startStock(t)
	c.runner, err = podprocess.Start(ctx, cp, podprocess.Options{Nodes: append(nodes, workers...), Programs: programs})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.runner.Stop()) })
	return c
}

// requireAvailable skips the test where it can't run.
func requireAvailable(t *testing.T, unavailable error) {
	t.Helper()
	if unavailable == nil {
		return
	}
	if os.Getenv(ciEnv) == "true" {
		require.NoError(t, unavailable, "with CI=true, that is a failure")
	}
	t.Skip(unavailable)
}

// startStock starts kube-scheduler as in any cluster. It does not find out by itself that the
// API server is older.
func (c *cluster) startStock(t *testing.T) {
	t.Helper()
	args := []string{"--leader-elect=true"}
	if older := os.Getenv(controlplane.KubernetesEnv); older != "" {
		args = append(args, "--emulated-version="+older)
	}
	var err error
	c.stock, err = c.StartScheduler(context.WithoutCancel(t.Context()), controlplane.SchedulerOptions{Binary: c.Binary(controlplane.KubeScheduler), User: stock, Args: args})
	require.NoError(t, err)
}

// helm runs helm as the administrator, in the namespace that docs/install.md names.
func (c *cluster) helm(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	return helm.Run(t, append(args, "--namespace=kube-system", "--kubeconfig="+c.Kubeconfig())...)
}

// install installs or upgrades without waiting, with values as in "--set".
func (c *cluster) install(t *testing.T, command string, values ...string) (output string, err error) {
	t.Helper()
	args := []string{command, releaseName, helm.Chart(t), "--set=image.registry=registry.example.com/celset"}
	for _, value := range values {
		if strings.HasPrefix(value, "--") {
			args = append(args, value)
			continue
		}
		args = append(args, "--set="+value)
	}
	return c.helm(t, args...)
}

// deploy installs or upgrades, and waits as long as helm does.
func (c *cluster) deploy(t *testing.T, command string, values ...string) string {
	t.Helper()
	began := time.Now()
	output, err := c.install(t, command, append(values, "--wait", "--timeout="+patience.String())...)
	require.NoError(t, err, "%s\n%v", output, c.runner.Problems())
	t.Logf("helm %s took %.1fs", command, time.Since(began).Seconds())
	return output
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, condition), what)
}

// pods are those of a program that are not to be deleted.
func (c *cluster) pods(t *testing.T, name string) []corev1.Pod {
	t.Helper()
	list, err := c.Client().CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
	require.NoError(t, err)
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// requireProbed demands so many pods of the programs, which answer to all their probes.
func (c *cluster) requireProbed(t *testing.T, replicas map[string]int) []corev1.Pod {
	t.Helper()
	var all []corev1.Pod
	for name, count := range replicas {
		pods := c.pods(t, name)
		require.Len(t, pods, count, name)
		for i := range pods {
			probes, err := c.runner.Probe(t.Context(), &pods[i])
			require.NoError(t, err, pods[i].Name)
			require.GreaterOrEqual(t, probes, 2, pods[i].Name)
		}
		all = append(all, pods...)
	}
	return all
}
