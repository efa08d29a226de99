// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chart

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	certutil "k8s.io/client-go/util/cert"
)

// webhookName is what the API server calls the webhook.
const webhookName = "celset-webhook.celset-system.svc"

// newCertificate signs itself.
func newCertificate(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(name, nil, nil)
	require.NoError(t, err)
	return certificate, key
}

func (c *cluster) createSecret(ctx context.Context, name string, certificate, key []byte) error {
	_, err := c.Client().CoreV1().Secrets(system).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}, metav1.CreateOptions{})
	return err
}

// manageCertificates does what cert-manager does, once: it makes the certificate that is asked for,
// and tells the API server of it where an annotation says so.
func (c *cluster) manageCertificates(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	for ; ; time.Sleep(100 * time.Millisecond) {
		asked, err := client.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}).
			Namespace(system).List(ctx, metav1.ListOptions{})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		hooks, err := c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "celset-webhook", metav1.GetOptions{})
		if apierrors.IsNotFound(err) || len(asked.Items) == 0 {
			continue
		}
		if err != nil {
			return err
		}
		object := asked.Items[0]
		names, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "dnsNames")
		secret, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
		certificate, key, err := certutil.GenerateSelfSignedCertKey(names[0], nil, names[1:])
		if err != nil {
			return err
		}
		if err := c.createSecret(ctx, secret, certificate, key); err != nil {
			return err
		}
		if hooks.Annotations["cert-manager.io/inject-ca-from"] != object.GetNamespace()+"/"+object.GetName() {
			return nil
		}
		for i := range hooks.Webhooks {
			hooks.Webhooks[i].ClientConfig.CABundle = certificate
		}
		_, err = c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(ctx, hooks, metav1.UpdateOptions{FieldManager: "cainjector"})
		return err
	}
}

// endpoint is where a PodMonitor has Prometheus look.
type endpoint struct {
	port, scheme, path, secret, key string
}

func endpointOf(t *testing.T, monitor *unstructured.Unstructured) endpoint {
	t.Helper()
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "podMetricsEndpoints")
	require.NoError(t, err)
	require.Len(t, endpoints, 1)
	field := func(otherwise string, fields ...string) string {
		value, found, err := unstructured.NestedString(endpoints[0].(map[string]any), fields...)
		require.NoError(t, err)
		if !found {
			return otherwise
		}
		return value
	}
	return endpoint{
		port: field("", "port"), scheme: field("http", "scheme"), path: field("/metrics", "path"),
		secret: field("", "authorization", "credentials", "name"), key: field("", "authorization", "credentials", "key"),
	}
}

// requireScraped reads the metrics of all pods as the PodMonitors say, and without their tokens.
func (c *cluster) requireScraped(t *testing.T) {
	t.Helper()
	monitors, err := c.dynamic(t).Resource(schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "podmonitors"}).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, monitors.Items, len(programs))
	for i := range monitors.Items {
		monitor := &monitors.Items[i]
		require.Equal(t, "prometheus", monitor.GetLabels()["release"])
		selector, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
		require.NoError(t, err)
		pods, err := c.Client().CoreV1().Pods(monitor.GetNamespace()).List(t.Context(), metav1.ListOptions{
			LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: selector}),
		})
		require.NoError(t, err)
		require.NotEmpty(t, pods.Items, monitor.GetName())
		at := endpointOf(t, monitor)
		token := ""
		if at.secret != "" {
			secret, err := c.Client().CoreV1().Secrets(monitor.GetNamespace()).Get(t.Context(), at.secret, metav1.GetOptions{})
			require.NoError(t, err)
			token = string(secret.Data[at.key])
			require.NotEmpty(t, token)
		}
		for j := range pods.Items {
			c.requirePage(t, &pods.Items[j], at, token)
		}
	}
}

func (c *cluster) requirePage(t *testing.T, pod *corev1.Pod, at endpoint, token string) {
	t.Helper()
	var status int
	var page []byte
	// A ready pod need not listen for Prometheus yet, which asks again as this does.
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		status, page, err = c.runner.Get(ctx, pod, at.scheme, at.port, at.path, token)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return false, nil
		}
		return true, err
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, "%s: %s", pod.Name, page)
	require.True(t, strings.HasPrefix(string(page), "# HELP "), "%s: %.200s", pod.Name, page)
	if token != "" {
		status, _, err = c.runner.Get(t.Context(), pod, at.scheme, at.port, at.path, "")
		require.NoError(t, err)
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, status, pod.Name)
	}
}
