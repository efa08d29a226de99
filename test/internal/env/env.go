// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package env starts real control planes for tests, and creates objects in them. A control plane belongs to one test, or is
// shared by all tests of a package.
//
//	cp := env.Start(t, controlplane.Options{SkipKwok: true})
//	cp.ApplyManifests(t, "scheduler/rbac.yaml")
//	cp.StartScheduler(t, controlplane.SchedulerOptions{User: env.Scheduler.Name})
//	l := cp.NewLab(t, "ring", 2)
//	mla := l.Ring(t, 8).Drivers()[0]
//	l.Run(t, "pod", env.CelsetProfile, env.Request("mla", mla, 3), env.Constrained("row", env.Contiguous(mla, 3)))
//	l.RequireRunning(t, "pod")
//
// Control planes end with the test that started them. Shared ones end with the package:
//
//	func TestMain(m *testing.M) { env.Main(m) }
//
//	var cluster = env.Share(func(t testing.TB) *env.Env { return env.APIServer(t) })
//
// Logs stay after a failure, and the output names their directory.
package env

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/test/controlplane"
)

// The names of the profiles in manifests/scheduler/config.yaml.
const (
	CelsetProfile = "celset-scheduler"
	StockProfile  = "default-scheduler"
)

// The users that have rights from the manifests.
var (
	Scheduler      = ServiceAccount("kube-system", "celset-scheduler")
	Webhook        = ServiceAccount("celset-system", "celset-webhook")
	Placement      = ServiceAccount("celset-system", "celset-placement")
	TopologyDriver = ServiceAccount("celset-topology-driver", "celset-topology-driver")
	// KubeScheduler is the user as which kube-scheduler runs in every cluster.
	KubeScheduler = controlplane.User{Name: "system:kube-scheduler"}
)

// ServiceAccount returns the user of a ServiceAccount.
func ServiceAccount(namespace, name string) controlplane.User {
	const account = "system:serviceaccount"
	return controlplane.User{Name: account + ":" + namespace + ":" + name, Groups: []string{account + "s", account + "s:" + namespace}}
}

// An Env is a control plane that ends with a test, or with all tests of a package.
type Env struct {
	*controlplane.ControlPlane
	// static is set if kwok does not run. The nodes of labs are then Ready from the start, and pods on them never run.
	static bool
}

// Start starts a control plane. It also builds the programs if they are out of date.
func Start(t testing.TB, options controlplane.Options, programs ...string) *Env {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	options.Progress = t.Output()
	// If CELSET_BIN is set, its directory contains binaries that were built before.
	options.Prebuilt = options.Prebuilt || os.Getenv(controlplane.BinDirEnv) != ""
	if !options.Prebuilt && len(programs) > 0 {
		_, err := controlplane.Build(ctx, "", t.Output(), programs...)
		require.NoError(t, err)
	}
	own := options.DataDir == ""
	if own {
		// t.TempDir is unsuitable for two reasons: its path may be too long for a socket, and it is removed even if the test
		// fails and the logs are needed.
		var err error
		options.DataDir, err = os.MkdirTemp("", "celset-")
		require.NoError(t, err)
	}
	cp, err := controlplane.Start(ctx, options)
	require.NoError(t, err, "the components' files are in %s", options.DataDir)
	t.Cleanup(func() {
		cp.Stop()
		switch {
		case t.Failed():
			t.Logf("the components' logs are in %s", cp.LogDir())
		case own:
			require.NoError(t, os.RemoveAll(options.DataDir))
		}
	})
	return &Env{ControlPlane: cp, static: options.SkipKwok}
}

// APIServer starts a control plane without controllers and kwok.
func APIServer(t testing.TB, users ...controlplane.User) *Env {
	t.Helper()
	return Start(t, controlplane.Options{SkipKwok: true, SkipControllerManager: true, Users: users})
}

// Program builds a program of this module or of Kubernetes if needed, and returns its path.
func Program(t testing.TB, name string) string {
	t.Helper()
	dir, err := controlplane.BinDir()
	if os.Getenv(controlplane.BinDirEnv) == "" {
		dir, err = controlplane.Build(t.Context(), "", t.Output(), name)
	}
	require.NoError(t, err)
	return filepath.Join(dir, name)
}

// Manifest returns the path of a file in manifests.
func Manifest(t testing.TB, elements ...string) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	return filepath.Join(append([]string{root, "manifests"}, elements...)...)
}

// ApplyManifests applies the files in manifests that match the patterns.
func (e *Env) ApplyManifests(t testing.TB, patterns ...string) {
	t.Helper()
	for _, content := range read(t, patterns) {
		e.ApplyText(t, content)
	}
}

// read returns the contents of the files in manifests that match the patterns.
func read(t testing.TB, patterns []string) (contents []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(Manifest(t, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			contents = append(contents, string(content))
		}
	}
	return contents
}

// ApplyText applies objects as the administrator.
func (e *Env) ApplyText(t testing.TB, manifest string) {
	t.Helper()
	_, err := controlplane.Apply(t.Context(), e.RESTConfig(), []byte(manifest), controlplane.ApplyOptions{})
	require.NoError(t, err)
}

// Kubectl runs kubectl as the administrator.
func (e *Env) Kubectl(t testing.TB, namespace string, args ...string) (output string, err error) {
	t.Helper()
	flags := []string{"--kubeconfig=" + e.Kubeconfig(), "--cache-dir=" + filepath.Join(e.DataDir(), "kubectl")}
	if namespace != "" {
		flags = append(flags, "--namespace="+namespace)
	}
	content, err := exec.CommandContext(t.Context(), e.Binary(controlplane.Kubectl), append(flags, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, content)
	}
	return string(content), nil
}

// StartScheduler starts celset-scheduler. Unless the options say otherwise, it has the configuration in manifests and its
// feature gates are on.
func (e *Env) StartScheduler(t testing.TB, options controlplane.SchedulerOptions) *controlplane.Process {
	t.Helper()
	if options.Config == nil && options.ConfigFile == "" {
		options.ConfigFile = Manifest(t, "scheduler", "config.yaml")
	}
	gates := map[string]bool{v1alpha1.FeatureGate: true}
	maps.Copy(gates, options.FeatureGates)
	options.FeatureGates = gates
	return e.startScheduler(t, options)
}

// StartStock starts kube-scheduler with the user and the rights that it has in every cluster.
func (e *Env) StartStock(t testing.TB, options controlplane.SchedulerOptions) *controlplane.Process {
	t.Helper()
	options.Binary = e.Binary(controlplane.KubeScheduler)
	options.Args = append(options.Args, "--leader-elect=true")
	return e.startScheduler(t, Emulated(options))
}

// Emulated makes kube-scheduler emulate the version of an older API server. kube-scheduler does not detect the version by
// itself.
func Emulated(options controlplane.SchedulerOptions) controlplane.SchedulerOptions {
	if older := os.Getenv(controlplane.KubernetesEnv); older != "" {
		options.Args = append(options.Args, "--emulated-version="+older)
	}
	return options
}

func (e *Env) startScheduler(t testing.TB, options controlplane.SchedulerOptions) *controlplane.Process {
	t.Helper()
	p, err := e.ControlPlane.StartScheduler(context.WithoutCancel(t.Context()), options)
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	return p
}

// FreeAddress returns an address of this machine with an unused port.
func FreeAddress(t testing.TB) string {
	t.Helper()
	ports, err := controlplane.FreePorts(1)
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
}

// RequireNothingForbidden requires that a program's log contains no error "forbidden", so that its RBAC rights suffice.
func RequireNothingForbidden(t testing.TB, p *controlplane.Process) {
	t.Helper()
	log, err := os.ReadFile(p.LogFile())
	require.NoError(t, err)
	require.NotEmpty(t, log)
	require.NotContains(t, strings.ToLower(string(log)), "forbidden", "the manifests give all rights that it takes")
}

// Proxy starts a proxy to the API server. It sends requests through the transport, which adds credentials. If the transport
// returns an error, the proxy closes the connection without a response. The caller must close the proxy.
func Proxy(api *url.URL, transport http.RoundTripper) *httptest.Server {
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(api) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		// Without this setting, the proxy would log each watch that ends.
		ErrorLog: log.New(io.Discard, "", 0),
	})
}

// Kubeconfig writes a kubeconfig for a server that needs no authentication, and returns the path.
func Kubeconfig(t testing.TB, server string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"proxy": {Server: server}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy"}},
		CurrentContext: "proxy",
	}, path))
	return path
}

const (
	// Patience is the limit for each wait of a test. It is shorter than the five minutes after which a scheduler retries pods
	// without an event. So if a pod is scheduled in time, an event has caused the retry.
	Patience = 3 * time.Minute

	pollPeriod = 50 * time.Millisecond
)

// Eventually calls check until it returns an empty complaint. If check returns an error, or at the end of Patience, the test
// fails.
func Eventually(t testing.TB, what string, check func(context.Context) (complaint string, err error)) {
	t.Helper()
	complaint := ""
	err := wait.PollUntilContextTimeout(t.Context(), pollPeriod, Patience, true, func(ctx context.Context) (_ bool, err error) {
		complaint, err = check(ctx)
		return err == nil && complaint == "", err
	})
	require.NoError(t, err, "%s: %s", what, complaint)
}

// Until calls condition until it returns true. If condition returns an error, or at the end of Patience, the test fails.
func Until(t testing.TB, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), pollPeriod, Patience, true, condition), what)
}

// Receive waits until a value arrives or the channel is closed. At the end of Patience, the test fails. A plain receive could
// block until the timeout of the whole run.
func Receive[T any](t testing.TB, what string, values <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-values:
	case <-time.After(Patience):
		require.FailNow(t, what+" did not come")
	}
	return value
}

// Becomes waits until get returns want. On failure it shows the difference.
func Becomes[T any](t testing.TB, want T, get func() T) {
	t.Helper()
	var difference string
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(pollPeriod) {
		if difference = cmp.Diff(want, get()); difference == "" {
			return
		}
	}
	t.Fatalf("(-want +got):\n%s", difference)
}
