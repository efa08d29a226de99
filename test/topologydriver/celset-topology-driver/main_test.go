// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"

	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/program"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/topologydriver"
)

const kubeconfig = "--kubeconfig=testdata/kubeconfig.yaml"

// parse returns the options for the arguments, as the command parses them.
func parse(t *testing.T, args ...string) (*options, error) {
	t.Helper()
	o := newOptions()
	o.registry = metrics.NewKubeRegistry()
	command := newCommand(o)
	// Logging flags can be applied only once per process, so the test runs only the other steps of the command.
	err := command.ParseFlags(args)
	if err == nil {
		err = command.ValidateArgs(command.Flags().Args())
	}
	return o, err
}

func TestFlags(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	node := "--node-name=node-1"
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"unknown flag":      {[]string{"--nonsense"}, "unknown flag: --nonsense"},
		"argument":          {[]string{"now"}, `unknown command "now"`},
		"no node":           {nil, "--node-name and the environment variable NODE_NAME are empty"},
		"no directories":    {[]string{node, "--kubelet-root-dir=", "--cdi-dir="}, "--kubelet-root-dir is empty; remove the flag to use the default\n--cdi-dir is empty"},
		"no address":        {[]string{node, "--metrics-bind-address="}, "--metrics-bind-address is empty"},
		"unknown topology":  {[]string{node, "--topology=star"}, `topology "star": must be one of`},
		"too few devices":   {[]string{node, "--devices=1"}, "ring: devices: must be 3 to 4096, is 1"},
		"unknown machine":   {[]string{node, "--machine=dgx"}, `--machine: machine "dgx": must be one of aws-p4d, `},
		"machine and size":  {[]string{node, "--machine=hgx-h100", "--devices=4"}, "--machine=hgx-h100 can't be used with --devices"},
		"two models":        {[]string{node, "--machine=hgx-h100", "--slices=x.yaml"}, "--machine and --slices can't be used together"},
		"no slices":         {[]string{node, "--slices=/does/not/exist"}, "--slices: open /does/not/exist: no such file"},
		"slices and size":   {[]string{node, "--slices=testdata/slices.yaml", "--rows=4"}, "--slices=testdata/slices.yaml can't be used with --rows"},
		"no kubeconfig":     {[]string{node, "--kubeconfig=/does/not/exist"}, "set --kubeconfig, or run in a pod"},
		"no directory":      {[]string{node, kubeconfig, "--kubelet-root-dir=/dev/null"}, "driver mla.example.com: mkdir /dev/null"},
		"no name of a node": {[]string{kubeconfig, "--node-name=Node"}, `node name "Node"`},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(t, test.args...)
			if err == nil {
				o.Health = program.NoAddress
				if !strings.Contains(strings.Join(test.args, " "), "--kubelet-root-dir") {
					o.kubeletDir, o.cdiDir = shortDir(t), shortDir(t)
				}
				err = run(t.Context(), o)
			}
			require.ErrorContains(t, err, test.err)
		})
	}
}

// TestEnvironment checks that the driver reads the node's name and the pod's UID from environment variables.
func TestEnvironment(t *testing.T) {
	t.Setenv("NODE_NAME", "node-7")
	t.Setenv("POD_UID", "uid-7")
	o, err := parse(t, kubeconfig, "--topology=couples", "--devices=4", "--nic-driver-name=eth.test")
	require.NoError(t, err)
	config, err := o.config()
	require.NoError(t, err)
	require.Equal(t, "node-7", config.NodeName)
	require.EqualValues(t, "uid-7", config.PodUID)
	require.Equal(t, "2 couples of gpu.example.com and eth.test", config.Topology.String())
	require.Equal(t, "/var/lib/kubelet", config.KubeletDir)
	require.Equal(t, "/var/run/cdi", config.CDIDir)
}

// TestMachine checks that all drivers of a machine get the node's name and the same options.
func TestMachine(t *testing.T) {
	o, err := parse(t, kubeconfig, "--node-name=node-7", "--topology=ring", "--machine=hgx-h100")
	require.NoError(t, err)
	config, err := o.config()
	require.NoError(t, err)
	require.Equal(t, []string{"gpu.nvidia.com", "dra.net", "compute-domain.nvidia.com"}, config.Topology.Drivers())
	modelled, err := machine.ByName("hgx-h100")
	require.NoError(t, err)
	require.Equal(t, modelled.Topology("node-7"), config.Topology)
}

// TestSlices checks that the driver publishes the devices of a file with ResourceSlices.
func TestSlices(t *testing.T) {
	o, err := parse(t, kubeconfig, "--node-name=node-7", "--topology=ring", "--slices=testdata/slices.yaml")
	require.NoError(t, err)
	config, err := o.config()
	require.NoError(t, err)
	published, err := config.Topology.ResourceSlices(config.NodeName)
	require.NoError(t, err)
	var told []string
	for _, slice := range published {
		for _, d := range slice.Spec.Devices {
			told = append(told, fmt.Sprintf("%s %s %s/%s %v", *slice.Spec.NodeName, slice.Spec.Pool.Name, slice.Spec.Driver, d.Name, len(d.Attributes)))
		}
	}
	require.Equal(t, []string{"node-7 node-7 gpu.example.com/gpu-0 1", "node-7 node-7 gpu.example.com/gpu-1 1", "node-7 node-7 nic.example.com/nic-0 0"}, told)
}

// shortDir returns a directory whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "celset-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// TestAddressInUse checks that the program ends if it can't serve at an address, and leaves no sockets.
func TestAddressInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	o, err := parse(t, kubeconfig, "--node-name=node-1", "--health-probe-bind-address=0", "--metrics-bind-address="+listener.Addr().String())
	require.NoError(t, err)
	o.kubeletDir, o.cdiDir = shortDir(t), shortDir(t)
	require.ErrorContains(t, run(t.Context(), o), "--metrics-bind-address: listen tcp "+listener.Addr().String())
	entries, err := os.ReadDir(filepath.Join(o.kubeletDir, "plugins_registry"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestRun runs the program with an API server, and requests its HTTP endpoints.
func TestRun(t *testing.T) {
	cp := env.APIServer(t, env.TopologyDriver)
	client := cp.Client()
	env.Create(t, client.CoreV1().Nodes(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	env.Create(t, client.RbacV1().ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "driver"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: env.TopologyDriver.Name}},
	})
	config, err := cp.KubeconfigFor(env.TopologyDriver.Name)
	require.NoError(t, err)

	o, err := parse(t, "--node-name=node-1", "--topology=mesh", "--rows=2", "--columns=3", "--device-prefix=mla", "--kubeconfig="+config,
		"--health-probe-bind-address="+env.FreeAddress(t), "--metrics-bind-address="+env.FreeAddress(t))
	require.NoError(t, err)
	o.kubeletDir, o.cdiDir, o.registry = shortDir(t), shortDir(t), processRegistry{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, o) }()

	require.Eventually(t, func() bool {
		code, _ := get("http://" + o.Health + "/healthz")
		return code == http.StatusOK
	}, 2*time.Minute, 50*time.Millisecond)
	code, _ := get("http://" + o.Health + "/readyz")
	require.Equal(t, http.StatusInternalServerError, code, "there is no kubelet")
	require.Eventually(t, func() bool {
		slices, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		return err == nil && len(slices.Items) == 1 && len(slices.Items[0].Spec.Devices) == 6 && slices.Items[0].Spec.Driver == "mesh.example.com"
	}, 2*time.Minute, 50*time.Millisecond)
	_, page := get("http://" + o.Metrics + "/metrics")
	for _, line := range []string{
		`celset_topology_driver_published_devices{driver="mesh.example.com"} 6`,
		`celset_topology_driver_prepared_claims{driver="mesh.example.com"} 0`,
		`celset_topology_driver_double_allocations_total{driver="mesh.example.com"} 0`,
		`celset_topology_driver_claim_duration_seconds_count{driver="mesh.example.com",operation="prepare",result="failed"} 0`,
	} {
		require.Contains(t, page, line)
	}

	cancel()
	require.NoError(t, <-done, "ending is no error")
	entries, err := os.ReadDir(filepath.Join(o.kubeletDir, "plugins_registry"))
	require.NoError(t, err)
	require.Empty(t, entries)
	code, _ = get("http://" + o.Health + "/healthz")
	require.Zero(t, code)
}

// get requests a URL, and returns the status code and the body. Without a response it returns zero values.
func get(url string) (code int, body string) {
	response, err := http.Get(url)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(content)
}

// TestPage checks that docs/topology-driver.md lists all flags, and the devices that the driver publishes by default.
func TestPage(t *testing.T) {
	content, err := os.ReadFile("../../../docs/topology-driver.md")
	require.NoError(t, err)
	page := string(content)
	o := newOptions()
	own, shared := pflag.NewFlagSet("own", pflag.ContinueOnError), pflag.NewFlagSet("shared", pflag.ContinueOnError)
	o.AddFlags(own)
	logsapi.AddFlags(logsapi.NewLoggingConfiguration(), shared)
	own.VisitAll(func(flag *pflag.Flag) {
		if shared.Lookup(flag.Name) == nil {
			require.Contains(t, page, "`--"+flag.Name, "the page does not describe it")
		}
	})
	for _, m := range machine.All() {
		_, row, found := strings.Cut(page, "\n| `"+m.Name+"`")
		require.True(t, found, m.Name)
		row, _, _ = strings.Cut(row, "\n")
		require.Contains(t, row, m.Title)
		for _, gate := range m.FeatureGates() {
			require.Contains(t, page, gate)
		}
		for _, driver := range m.Drivers() {
			require.Regexp(t, `\d `+driver, row)
		}
	}
	for _, kind := range topologydriver.Kinds() {
		o.wiring.Kind, o.wiring.PeerList = kind, true
		wired, err := o.wiring.Topology()
		require.NoError(t, err)
		_, row, found := strings.Cut(page, "\n| `"+string(kind)+"`")
		require.True(t, found, kind)
		row, _, _ = strings.Cut(row, "\n")
		for _, driver := range wired.Drivers() {
			require.Contains(t, row, driver)
		}
		for _, device := range wired.Devices[:1] {
			require.Contains(t, row, device.Name)
			for name := range device.Attributes {
				require.Contains(t, row, "`"+string(name)+"`")
			}
		}
	}
}
