// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/celset/celset/cmd/internal/version"
)

type options struct {
	ManagerOptions
	workers int
}

func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.ManagerOptions.AddFlags(flags)
	flags.IntVar(&o.workers, "workers", o.workers, "How many things are done at a time.")
}

// A command has all flags, says what is wrong with them, sets logging up and runs with the
// context that it was given.
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
	require.Equal(t, "any version "+version.Get()+"\n", said.String())
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
	served := o.MetricsServer()
	require.Equal(t, ":8443", served.BindAddress)
	require.True(t, served.SecureServing)
	require.NotNil(t, served.FilterProvider, "not for everybody")
	o.Secure = false
	served = o.MetricsServer()
	require.False(t, served.SecureServing)
	require.Nil(t, served.FilterProvider)
}

func TestWhatIsNoAddress(t *testing.T) {
	o := NewOptions(1, "")
	const none = " is empty; leave the flag out for its default, or give 0 for none"
	require.EqualError(t, o.Validate(), "--metrics-bind-address"+none)
	o.Health = ""
	require.EqualError(t, o.Validate(), "--health-probe-bind-address"+none+"\n--metrics-bind-address"+none)
	o.Health, o.Metrics = NoAddress, NoAddress
	require.NoError(t, o.Validate())

	o.Kubeconfig = "/does/not/exist"
	_, err := o.ClientConfig()
	require.ErrorContains(t, err, "/does/not/exist")
	require.ErrorContains(t, err, "give --kubeconfig, or run in a pod")
}
