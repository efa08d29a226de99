// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/celset/celset/test/controlplane"
)

// mainEnv makes the test binary run devcluster's main function, so that tests can check signals and exit codes.
const mainEnv = "DEVCLUSTER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program returns a command that runs devcluster with the arguments. It is killed at the end of the test.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), mainEnv+"=1")
	return cmd
}

func TestUpUntilSignal(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := program(t, "up", "--data-dir="+dir)
			cmd.Stderr = t.Output()
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())

			kubeconfig := waitForKubeconfig(t, stdout)
			require.Equal(t, dir, filepath.Dir(kubeconfig))
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			require.NoError(t, err)
			client, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			_, err = client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
			require.NoError(t, err)
			require.FileExists(t, filepath.Join(dir, "logs", controlplane.CelsetScheduler+".log"))

			require.NoError(t, cmd.Process.Signal(signal))
			require.NoError(t, cmd.Wait(), "exit code 0")
			_, err = client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
			require.ErrorContains(t, err, "connection refused")
		})
	}
}

// TestUpAsInProduction checks that flags reach the components, and that controllers finish the deletion of objects with
// finalizers.
func TestUpAsInProduction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := program(t, "up", "--data-dir="+dir, "--webhook", "--leader-elect", "--feature-gates=CelsetDevicePreemption=false,DRADeviceTaints=true")
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	config, err := clientcmd.BuildConfigFromFlags("", waitForKubeconfig(t, stdout))
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	lease, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), controlplane.CelsetScheduler, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, *lease.Spec.HolderIdentity)

	example, err := os.ReadFile("../../manifests/examples/ring-4-connected.yaml")
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		misspelt := bytes.ReplaceAll(example, []byte("devices.map("), []byte("devicez.map("))
		_, err := controlplane.Apply(t.Context(), config, misspelt, controlplane.ApplyOptions{Namespace: "default", DryRun: true})
		require.ErrorContains(c, err, "undeclared reference to 'devicez'")
	}, time.Minute, 100*time.Millisecond)

	// The API server adds finalizers to the PodGroup and the PersistentVolumeClaim. Only controllers remove them.
	job, err := os.ReadFile("../../manifests/examples/gangs/torus-4x4.yaml")
	require.NoError(t, err)
	volume := []byte("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: v}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
	for _, manifest := range [][]byte{job, volume} {
		_, err = controlplane.Apply(t.Context(), config, manifest, controlplane.ApplyOptions{Namespace: "default"})
		require.NoError(t, err)
	}
	groups, volumes := client.SchedulingV1beta1().PodGroups("default"), client.CoreV1().PersistentVolumeClaims("default")
	orphans := metav1.DeletePropagationBackground
	require.NoError(t, client.BatchV1().Jobs("default").Delete(t.Context(), "train-torus", metav1.DeleteOptions{PropagationPolicy: &orphans}))
	require.NoError(t, groups.Delete(t.Context(), "train-torus", metav1.DeleteOptions{}))
	require.NoError(t, volumes.Delete(t.Context(), "v", metav1.DeleteOptions{}))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := groups.Get(t.Context(), "train-torus", metav1.GetOptions{})
		require.True(c, apierrors.IsNotFound(err), "the PodGroup stays")
		_, err = volumes.Get(t.Context(), "v", metav1.GetOptions{})
		require.True(c, apierrors.IsNotFound(err), "the PersistentVolumeClaim stays")
	}, 2*time.Minute, 200*time.Millisecond)

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), "exit code 0")
}

// TestUpHub starts a hub with a data directory and waits until a Placement is decided.
func TestUpHub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := program(t, "up", "hub", "--data-dir="+dir)
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	config, err := clientcmd.BuildConfigFromFlags("", waitForKubeconfig(t, stdout))
	require.NoError(t, err)
	placement := []byte("apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: three, namespace: team}\nspec: {numberOfClusters: 3}\n")
	_, err = controlplane.Apply(t.Context(), config, placement, controlplane.ApplyOptions{})
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	placements := client.Resource(schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Resource: "placements"}).Namespace("team")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		object, err := placements.Get(t.Context(), "three", metav1.GetOptions{})
		require.NoError(c, err)
		selected, _, err := unstructured.NestedInt64(object.Object, "status", "numberOfSelectedClusters")
		require.NoError(c, err)
		require.EqualValues(c, 3, selected)
	}, time.Minute, 100*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), "exit code 0")
}

// waitForKubeconfig reads the output up to the line that sets KUBECONFIG, and returns the path. It discards the output after
// that line.
func waitForKubeconfig(t *testing.T, stdout io.Reader) string {
	t.Helper()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if path, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "export KUBECONFIG="); ok {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return path
		}
	}
	require.Fail(t, "no kubeconfig in the output", "%v", lines.Err())
	return ""
}

func TestUpFailsWhenAComponentEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finds the component in /proc")
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := program(t, "up", "--data-dir="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	waitForKubeconfig(t, stdout)

	etcd := childWithArgument(t, "--data-dir="+filepath.Join(dir, "etcd"))
	require.NoError(t, syscall.Kill(etcd, syscall.SIGKILL))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, stderr.String(), "devcluster: etcd ended by itself: signal: killed")
}

// childWithArgument returns the ID of the only process that has the argument in its command line.
func childWithArgument(t *testing.T, argument string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var found []int
	for _, file := range files {
		cmdline, err := os.ReadFile(file)
		if err == nil && slices.Contains(strings.Split(string(cmdline), "\x00"), argument) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			found = append(found, pid)
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

func TestBuild(t *testing.T) {
	dir := t.TempDir()
	out, err := program(t, "build", "--bin-dir="+dir, "devcluster").Output()
	require.NoError(t, err)
	require.Equal(t, "binaries are in "+dir+"\n", string(out))
	help, err := exec.CommandContext(t.Context(), filepath.Join(dir, "devcluster"), "--help").Output()
	require.NoError(t, err)
	require.Contains(t, string(help), "A local Kubernetes control plane")
}

func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown command":        {args: []string{"down"}, want: `unknown command "down"`},
		"unknown binary":         {args: []string{"build", "no-such"}, want: "build no-such: neither a known dependency nor a command"},
		"arguments to up":        {args: []string{"up", "x"}, want: `unknown command "x" for "devcluster up"`},
		"no such configuration":  {args: []string{"up", "--scheduler-config=no-such.yaml"}, want: "scheduler configuration: stat no-such.yaml: no such file"},
		"arguments to a demo":    {args: []string{"demo", "placement", "x"}, want: `unknown command "x" for "devcluster demo placement"`},
		"arguments to a node":    {args: []string{"demo", "real", "x"}, want: `unknown command "x" for "devcluster demo real"`},
		"arguments to a fleet":   {args: []string{"demo", "fleet", "x"}, want: `unknown command "x" for "devcluster demo fleet"`},
		"gate that is no bool":   {args: []string{"up", "--feature-gates=DRADeviceTaints=maybe"}, want: "--feature-gates: DRADeviceTaints=maybe must be true or false"},
		"arguments to a hub":     {args: []string{"up", "hub", "x"}, want: `unknown command "x" for "devcluster up hub"`},
		"no such demo":           {args: []string{"demo", "x"}, want: `unknown command "x" for "devcluster demo"`},
		"data directory is file": {args: []string{"up", "--data-dir=/dev/null"}, want: "data directory: mkdir /dev/null"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := program(t, test.args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Run(), &exit)
			require.Equal(t, 1, exit.ExitCode())
			require.Contains(t, stderr.String(), "devcluster: ")
			require.Contains(t, stderr.String(), test.want)
		})
	}
}
