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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/hub"
	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/placement/controller"
)

// namespace and serviceAccount are those in manifests/placement/rbac.yaml.
const (
	namespace      = "celset-system"
	serviceAccount = "system:serviceaccount:" + namespace + ":celset-placement"
)

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		err  string
	}{
		"unknown flag":    {[]string{"--nonsense"}, "unknown flag: --nonsense"},
		"argument":        {[]string{"now"}, `unknown command "now"`},
		"no kubeconfig":   {[]string{"--kubeconfig=/does/not/exist"}, "give --kubeconfig, or run in a pod"},
		"no workers":      {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--workers=0"}, "--workers: 0 is not positive"},
		"short lease":     {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--leader-elect-lease-duration=5s"}, "must be longer than --leader-elect-renew-deadline 10s"},
		"eager candidate": {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--leader-elect-retry-period=11s"}, "longer than --leader-elect-retry-period 11s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := newOptions()
			command := newCommand()
			command.SetArgs(test.args)
			command.SetOut(io.Discard)
			command.SetErr(io.Discard)
			// Flags of logging may be applied only once in a process, so what comes
			// after them is run as the command would.
			command.RunE = nil
			command.ResetFlags()
			o.addFlags(command.Flags())
			err := command.ParseFlags(test.args)
			if err == nil {
				err = command.ValidateArgs(command.Flags().Args())
			}
			if err == nil {
				err = run(t.Context(), o)
			}
			require.ErrorContains(t, err, test.err)
		})
	}
}

// TestRun starts the program as it is deployed, but for TLS of the metrics, and with
// all Placements.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	controlPlane, err := controlplane.Start(t.Context(), controlplane.Options{
		DataDir: t.TempDir(), Progress: t.Output(), SkipKwok: true, SkipControllerManager: true,
		Prebuilt: os.Getenv(controlplane.BinDirEnv) != "",
		Users:    []controlplane.User{{Name: serviceAccount, Groups: []string{"system:serviceaccounts"}}},
	})
	require.NoError(t, err)
	defer controlPlane.Stop()
	require.NoError(t, hub.Install(t.Context(), controlPlane.RESTConfig()))

	rbac, err := os.ReadFile("../../manifests/placement/rbac.yaml")
	require.NoError(t, err)
	_, err = controlplane.Apply(t.Context(), controlPlane.RESTConfig(), rbac, controlplane.ApplyOptions{})
	require.NoError(t, err)

	o := newOptions()
	o.all, o.bindings, o.secure = true, true, false
	o.kubeconfig, err = controlPlane.KubeconfigFor(serviceAccount)
	require.NoError(t, err)
	o.health, o.metrics, o.election.ResourceNamespace = freeAddress(t), freeAddress(t), namespace
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, o) }()

	require.Contains(t, get(t, "http://"+o.health+"/healthz"), "ok")
	require.Contains(t, get(t, "http://"+o.health+"/readyz"), "ok")
	c, err := client.New(controlPlane.RESTConfig(), client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	require.NoError(t, controller.AddToScheme(clientgoscheme.Scheme))
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "any"}}
	require.NoError(t, c.Create(ctx, object))
	require.Eventually(t, func() bool {
		return c.Get(ctx, client.ObjectKeyFromObject(object), object) == nil && len(object.Status.Conditions) > 0
	}, time.Minute, 50*time.Millisecond, "an empty status")
	require.Contains(t, get(t, "http://"+o.metrics+"/metrics"),
		fmt.Sprintf(`controller_runtime_reconcile_total{controller=%q,result="success"}`, controller.Name))
	require.Contains(t, get(t, "http://"+o.metrics+"/metrics"), fmt.Sprintf(`controller_runtime_max_concurrent_reconciles{controller=%q}`, binding.Name))
	lease, err := controlPlane.Client().CoordinationV1().Leases(namespace).Get(ctx, controller.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, *lease.Spec.HolderIdentity)
	stop()
	require.NoError(t, <-done)
	lease, err = controlPlane.Client().CoordinationV1().Leases(namespace).Get(t.Context(), controller.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, *lease.Spec.HolderIdentity, "the next one needs not wait")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

// get waits until an address answers, and returns the body.
func get(t *testing.T, url string) (body string) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get(url)
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		body = string(content)
		return err == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, url)
	return body
}
