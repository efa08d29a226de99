// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/internal/version"
)

type options struct {
	ManagerOptions
	workers int
}

func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.ManagerOptions.AddFlags(flags)
	flags.IntVar(&o.workers, "workers", o.workers, "How many things are done at a time.")
}

// TestCommand checks that a command has all flags, rejects invalid values, sets up logging, and passes its context to run.
func TestCommand(t *testing.T) {
	stop := errors.New("stop")
	type key struct{}
	o := &options{ManagerOptions: NewManagerOptions(50), workers: 5}
	var inRun any
	command := NewCommand("any", "Do anything", o, func(ctx context.Context) error {
		inRun = ctx.Value(key{})
		return stop
	})
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	command.SetContext(context.WithValue(t.Context(), key{}, "given"))

	for message, args := range map[string][]string{
		"unknown flag: --nonsense":        {"--nonsense"},
		`unknown command "now" for "any"`: {"now"},
		"Unsupported log format":          {"--logging-format=runes"},
	} {
		command.SetArgs(args)
		require.ErrorContains(t, command.Execute(), message)
		require.Nil(t, inRun)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"any": {Server: "https://127.0.0.1:1"}},
		Contexts:       map[string]*clientcmdapi.Context{"any": {Cluster: "any"}},
		CurrentContext: "any",
	}, kubeconfig))
	var said strings.Builder
	command.SetOut(&said)
	command.SetArgs([]string{"--version"})
	require.NoError(t, command.Execute())
	require.Equal(t, "any version "+version.Text()+"\n", said.String())
	require.Nil(t, inRun)
	require.NoError(t, command.Flags().Set("version", "false"))

	command.SetArgs([]string{
		"--kubeconfig=" + kubeconfig, "--kube-api-qps=7.5", "--kube-api-burst=9", "--health-probe-bind-address=:1",
		"--metrics-bind-address=:2", "--metrics-secure=false", "--workers=3", "--logging-format=json", "-v=1",
	})
	require.ErrorIs(t, command.Execute(), stop)
	require.Equal(t, "given", inRun)
	require.Equal(t, []any{":1", ":2", false, 3}, []any{o.Health, o.Metrics, o.Secure, o.workers})
	require.True(t, command.SilenceUsage, "what comes after flags is no matter of usage")

	config, err := o.ClientConfig()
	require.NoError(t, err)
	require.Equal(t, "https://127.0.0.1:1", config.Host)
	require.InDelta(t, 7.5, config.QPS, 0)
	require.Equal(t, 9, config.Burst)
}

func TestDefaults(t *testing.T) {
	o := NewManagerOptions(50)
	require.NoError(t, o.Validate())
	require.Equal(t, []any{float32(50), 100, ":8081", ":8443", true}, []any{o.QPS, o.Burst, o.Health, o.Metrics, o.Secure})
}

// host is a manager that records the servers added to it.
type host struct {
	manager.Manager
	served []*manager.Server
}

func (h *host) GetConfig() *rest.Config     { return &rest.Config{Host: "https://127.0.0.1:1"} }
func (h *host) GetHTTPClient() *http.Client { return &http.Client{} }
func (h *host) GetLogger() logr.Logger      { return logr.Discard() }
func (h *host) Add(one manager.Runnable) error {
	h.served = append(h.served, one.(*manager.Server))
	return nil
}

func TestServers(t *testing.T) {
	failing := errors.New("not yet")
	checks := Checks{
		Live:  map[string]healthz.Checker{"ping": healthz.Ping},
		Ready: map[string]healthz.Checker{"a": healthz.Ping, "b": func(*http.Request) error { return failing }},
	}
	for secure, metrics := range map[bool]int{true: http.StatusUnauthorized, false: http.StatusOK} {
		o := NewManagerOptions(50)
		o.Secure, o.Health, o.Metrics = secure, "127.0.0.1:0", "127.0.0.1:0"
		h := &host{}
		require.NoError(t, o.Serve(h, checks))
		ctx, cancel := context.WithCancel(t.Context())
		var running errgroup.Group
		for _, one := range h.served {
			require.False(t, one.NeedLeaderElection())
			running.Go(func() error { return one.Start(ctx) })
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		scheme := map[bool]string{true: "https://", false: "http://"}[secure]
		for url, want := range map[string]int{
			"http://" + h.served[0].Listener.Addr().String() + "/healthz":      http.StatusOK,
			"http://" + h.served[0].Listener.Addr().String() + "/healthz/ping": http.StatusOK,
			"http://" + h.served[0].Listener.Addr().String() + "/readyz":       http.StatusInternalServerError,
			"http://" + h.served[0].Listener.Addr().String() + "/readyz/a":     http.StatusOK,
			scheme + h.served[1].Listener.Addr().String() + "/metrics":         metrics,
			scheme + h.served[1].Listener.Addr().String() + "/other":           http.StatusNotFound,
		} {
			response, err := client.Get(url)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, want, response.StatusCode, url)
		}
		client.CloseIdleConnections()
		cancel()
		require.NoError(t, running.Wait())
	}
	o := NewManagerOptions(50)
	o.Health, o.Metrics = NoAddress, "256.0.0.1:0"
	require.ErrorContains(t, o.Serve(&host{}, checks), "--metrics-bind-address: ")
}

func TestWhatIsNoAddress(t *testing.T) {
	o := NewOptions(1, "")
	const none = " is empty; remove the flag to use the default, or use 0 to disable it"
	require.EqualError(t, o.Validate(), "--metrics-bind-address"+none)
	o.Health = ""
	require.EqualError(t, o.Validate(), "--health-probe-bind-address"+none+"\n--metrics-bind-address"+none)
	o.Health, o.Metrics = NoAddress, NoAddress
	require.NoError(t, o.Validate())

	o.Kubeconfig = "/does/not/exist"
	_, err := o.ClientConfig()
	require.ErrorContains(t, err, "/does/not/exist")
	require.ErrorContains(t, err, "set --kubeconfig, or run in a pod")
}
