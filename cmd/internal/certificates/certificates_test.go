// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

const (
	namespace = "celset-system"
	name      = "celset-webhook"
	lifetime  = 300 * 24 * time.Hour
)

// newKeeper returns a Keeper, an empty Secret, and a configuration that also has a webhook of another program.
func newKeeper(t *testing.T) (*Keeper, *fake.Clientset) {
	t.Helper()
	hook := func(name, service string) admissionv1.ValidatingWebhook {
		return admissionv1.ValidatingWebhook{Name: name, ClientConfig: admissionv1.WebhookClientConfig{
			Service: &admissionv1.ServiceReference{Namespace: namespace, Name: service}, CABundle: []byte("other"),
		}}
	}
	client := fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionv1.ValidatingWebhook{
			hook("claims.celset.dev", name), hook("allocations.celset.dev", name+"-guard"), hook("other.example.com", "other"),
		}},
	)
	return New(Options{
		Client: client, Namespace: namespace, Secret: name, Configuration: name, Services: []string{name, name + "-guard"},
		Lifetime: lifetime, Period: time.Minute,
	}), client
}

// bundles returns the certificates in each caBundle of the configuration, by name of the webhook.
func bundles(t *testing.T, client *fake.Clientset) map[string]bundle {
	t.Helper()
	configuration, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	result := map[string]bundle{}
	for _, hook := range configuration.Webhooks {
		result[hook.Name] = parse(hook.ClientConfig.CABundle)
	}
	return result
}

func TestFromNothing(t *testing.T) {
	k, client := newKeeper(t)
	require.ErrorIs(t, k.Check(nil), errNone)
	require.NoError(t, k.keep(t.Context()))
	require.NoError(t, k.Check(nil))
	shown, err := k.GetCertificate(nil)
	require.NoError(t, err)
	trusted := bundles(t, client)
	require.Empty(t, trusted["other.example.com"])
	for hook, service := range map[string]string{"claims.celset.dev": name, "allocations.celset.dev": name + "-guard"} {
		roots := x509.NewCertPool()
		for _, one := range trusted[hook] {
			roots.AddCert(one)
		}
		_, err := shown.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: service + "." + namespace + ".svc"})
		require.NoError(t, err)
	}
	// A second replica serves the same certificate, and neither replica writes again.
	other := New(k.options)
	client.ClearActions()
	require.NoError(t, other.keep(t.Context()))
	require.NoError(t, k.keep(t.Context()))
	for _, action := range client.Actions() {
		require.Equal(t, "get", action.GetVerb())
	}
	require.Equal(t, shown.Leaf.Raw, other.current.Load().Leaf.Raw)
}

// TestRotation follows the certificates for several lifetimes. A certificate in use was trusted for a third of a lifetime before,
// and stays trusted for a third after.
func TestRotation(t *testing.T) {
	k, _ := newKeeper(t)
	stored, now := &contents{}, time.Now()
	changed, err := k.rotate(stored, now)
	require.NoError(t, err)
	require.True(t, changed)
	for range 4 {
		current, next := stored.current, stored.next
		now = current.Leaf.NotAfter.Add(-lifetime/3 - time.Hour)
		changed, err := k.rotate(stored, now)
		require.NoError(t, err)
		require.False(t, changed, "it lasts")
		now = now.Add(2 * time.Hour)
		changed, err = k.rotate(stored, now)
		require.NoError(t, err)
		require.True(t, changed)
		require.Same(t, next, stored.current)
		require.True(t, stored.bundle.contains(current.Leaf, next.Leaf, stored.next.Leaf))
		require.LessOrEqual(t, len(stored.bundle), 4)
	}
	// No replica runs for ten lifetimes.
	now = now.Add(10 * lifetime)
	changed, err = k.rotate(stored, now)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, bundle{stored.current.Leaf, stored.next.Leaf}, stored.bundle)
	require.True(t, now.Before(stored.current.Leaf.NotAfter))
}

// TestRepairs checks that the Keeper replaces missing and broken certificates.
func TestRepairs(t *testing.T) {
	for name, edit := range map[string]func(data map[string][]byte){
		"no certificate": func(data map[string][]byte) { delete(data, certificateKey) },
		"wrong key":      func(data map[string][]byte) { data[privateKey] = data[nextPrivateKey] },
		"no next":        func(data map[string][]byte) { delete(data, nextCertificateKey) },
		"no bundle":      func(data map[string][]byte) { delete(data, bundleKey) },
		"wrong bundle":   func(data map[string][]byte) { data[bundleKey] = []byte("none") },
		"nothing":        func(data map[string][]byte) { clear(data) },
		"from a clock that is ahead": func(data map[string][]byte) {
			setPair(t, data, names(), time.Now().Add(3*time.Hour))
		},
		"for other names": func(data map[string][]byte) {
			setPair(t, data, []string{"a.example.com"}, time.Now())
		},
		"expired": func(data map[string][]byte) {
			setPair(t, data, names(), time.Now().Add(-2*lifetime))
		},
		"for clients": func(data map[string][]byte) {
			setPair(t, data, names(), time.Now(), x509.ExtKeyUsageClientAuth)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, client := newKeeper(t)
			require.NoError(t, k.keep(t.Context()))
			secret, err := client.CoreV1().Secrets(namespace).Get(t.Context(), k.options.Secret, metav1.GetOptions{})
			require.NoError(t, err)
			edit(secret.Data)
			_, err = client.CoreV1().Secrets(namespace).Update(t.Context(), secret, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.NoError(t, k.keep(t.Context()))
			stored, err := k.rotated(t.Context())
			require.NoError(t, err)
			require.True(t, stored.bundle.contains(stored.current.Leaf, stored.next.Leaf))
			shown, err := k.GetCertificate(nil)
			require.NoError(t, err)
			roots := x509.NewCertPool()
			roots.AddCert(shown.Leaf)
			_, err = shown.Leaf.Verify(x509.VerifyOptions{DNSName: names()[0], Roots: roots})
			require.NoError(t, err, "an API server takes it now")
			require.True(t, bundles(t, client)["claims.celset.dev"].contains(stored.bundle...))
		})
	}
	none, err := readPair(nil, certificateKey, privateKey, names(), time.Now())
	require.NoError(t, err, "the first one is still to be made")
	require.Nil(t, none)
}

func names() []string {
	return New(Options{Namespace: namespace, Services: []string{name, name + "-guard"}}).names()
}

// setPair stores a current and a next certificate in data. Both are valid from the time clock.
func setPair(t *testing.T, data map[string][]byte, names []string, clock time.Time, usages ...x509.ExtKeyUsage) {
	t.Helper()
	p, err := newPair(names, clock, lifetime)
	require.NoError(t, err)
	if len(usages) > 0 {
		template := *p.Leaf
		template.ExtKeyUsage = usages
		key, is := p.PrivateKey.(crypto.Signer)
		require.True(t, is)
		made, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
		require.NoError(t, err)
		p.certificate = bundle{{Raw: made}}.encoded()
	}
	data[certificateKey], data[privateKey] = p.certificate, p.key
	data[nextCertificateKey], data[nextPrivateKey] = p.certificate, p.key
}

func TestFailures(t *testing.T) {
	k, client := newKeeper(t)
	conflict := apierrors.NewConflict(corev1.Resource("secrets"), name, errors.New("another replica was faster"))
	fails := func(verb, resource string, err error) {
		client.PrependReactor(verb, resource, func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
	fails("update", "secrets", conflict)
	require.True(t, apierrors.IsConflict(k.keep(t.Context())))
	k, client = newKeeper(t)
	fails("patch", "validatingwebhookconfigurations", errors.New("no connection"))
	require.ErrorContains(t, k.keep(t.Context()), "no connection")
	require.Error(t, k.Check(nil), "nothing is shown that is not trusted")

	k, client = newKeeper(t)
	require.NoError(t, client.CoreV1().Secrets(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	require.ErrorContains(t, k.keep(t.Context()), "apply the manifests again")
	k, client = newKeeper(t)
	require.NoError(t, client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), name, metav1.DeleteOptions{}))
	require.ErrorContains(t, k.keep(t.Context()), "ValidatingWebhookConfiguration celset-webhook: ")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, k.Start(ctx))
}
