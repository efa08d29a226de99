// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package celsetwebhook

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// TestOwnCertificates installs the default overlay, without cert-manager and with two replicas. It checks that the webhook soon
// rejects wrong claims, and continues to do so while the replicas rotate the certificate.
func TestOwnCertificates(t *testing.T) {
	c := startCluster(t)
	first, second := c.replica(t), c.replica(t)
	service := serve(t, first.port, second.port)
	c.install(t, "default", nil, service)
	_, err := c.apply(t, claim("early", 4, "true"), controlplane.ApplyOptions{})
	require.ErrorContains(t, err, `failed calling webhook "claims.celset.dev"`)
	_, err = c.apply(t, strings.NewReplacer("celset.dev/a", "example.com/a", "driver: celset.dev", "driver: example.com").Replace(claim("plain", 4, "true")), controlplane.ApplyOptions{})
	require.NoError(t, err, "what does not concern celset is stored meanwhile")

	// Each certificate is in use for a third of its lifetime. This lifetime is long enough for a busy machine.
	const lifetime = 18 * time.Second
	for _, r := range []*replica{first, second} {
		r.run(t, "--certificate-lifetime="+lifetime.String())
	}
	c.waitForWebhook(t)
	_, err = c.apply(t, claim("right", 4, "true"), controlplane.ApplyOptions{})
	require.NoError(t, err)

	seen := map[string]bool{}
	for end := time.Now().Add(lifetime + lifetime/2); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_, err := c.apply(t, claim("wrong", 4, "1"), controlplane.ApplyOptions{})
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		secret, err := c.Client().CoreV1().Secrets("celset-system").Get(t.Context(), secretName, metav1.GetOptions{})
		require.NoError(t, err)
		seen[string(secret.Data[corev1.TLSCertKey])] = true
	}
	require.GreaterOrEqual(t, len(seen), 3, "certificates")

	// A user applies the manifests again. The certificates that the program wrote must stay.
	c.install(t, "default", nil, service)
	_, err = c.apply(t, claim("wrong", 4, "1"), controlplane.ApplyOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	// A user removes the certificates from the configuration. The program must add them again.
	hooks, err := c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), configurationName, metav1.GetOptions{})
	require.NoError(t, err)
	for i := range hooks.Webhooks {
		hooks.Webhooks[i].ClientConfig.CABundle = nil
	}
	_, err = c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), hooks, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.waitForWebhook(t)

	config, err := c.RESTConfigFor(env.Webhook.Name)
	require.NoError(t, err)
	secrets := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("celset-system")
	_, err = secrets.Get(t.Context(), "another", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "another"}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// serve listens on this host in place of a Service, and returns the port. It forwards each connection to the next of the ports.
// If no process listens there, it closes the connection.
func serve(t *testing.T, ports ...int) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var turn atomic.Uint32
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				endpoint, err := net.Dial("tcp", "localhost:"+strconv.Itoa(ports[int(turn.Add(1))%len(ports)]))
				if err != nil {
					return
				}
				defer endpoint.Close()
				go func() { _, _ = io.Copy(endpoint, client) }()
				_, _ = io.Copy(client, endpoint)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// TestGuardLabelsItsPod checks that only the pod of the elected guard has the label that the guard's Service selects. The
// programs have the RBAC rights in the manifests.
func TestGuardLabelsItsPod(t *testing.T) {
	c := startCluster(t)
	c.install(t, "default", nil, freePort(t))
	_, err := c.apply(t, readFile(t, manifests+"/guard/rbac.yaml"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	pods := c.Client().CoreV1().Pods("celset-system")
	start := func(name string) (stop func() error) {
		pod := env.Pod(name, "none")
		pod.Spec.ServiceAccountName = "celset-webhook"
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
		return c.replica(t).run(t, "--guard-allocations", "--guard-pod="+name, "--guard-grace=1s", "--guard-retry-period=100ms")
	}
	requireSelected := func(name string) {
		env.Until(t, name+" has the label", func(ctx context.Context) (bool, error) {
			list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: wellknown.LabelGuard + "=" + wellknown.GuardActive})
			return err == nil && len(list.Items) == 1 && list.Items[0].Name == name, err
		})
	}
	stop := start("first")
	requireSelected("first")
	start("second")
	requireSelected("first")
	require.NoError(t, stop())
	requireSelected("second")
}
