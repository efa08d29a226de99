// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates gives the replicas of a webhook certificates that they make themselves, and has
// the API server trust them.
//
//	keeper := certificates.New(certificates.Options{Client: client, Namespace: "celset-system", ...})
//	config := &tls.Config{GetCertificate: keeper.GetCertificate}
//	err := keeper.Start(ctx)
//
// A Secret has what the replicas share: the certificate in use, the one that follows it, and the
// certificates that API servers are to trust. All replicas read it, and each may write it. A write names
// the version that it replaces, so that one replica succeeds where two try, and no leader is elected.
//
// # Rotation
//
// A certificate is the next one for a third of its lifetime and in use for another third. API servers have
// trusted it for that long before a replica shows it, and trust it for the last third, while other replicas
// may still show it.
//
// # Rights
//
// The Secret must exist, so that the right to create Secrets is not needed: with it an account could have a
// token of any other account in the namespace. Each certificate signs itself and is no authority: the keys in
// the Secret can't sign certificates for other names.
package certificates

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// DefaultLifetime is that of a certificate.
	DefaultLifetime = 365 * 24 * time.Hour
	// DefaultPeriod is how often Secret and configuration are read.
	DefaultPeriod = 10 * time.Second
)

// Options are those of a [Keeper].
type Options struct {
	Client kubernetes.Interface
	// Namespace is that of the Secret and of the Services.
	Namespace string
	// Secret is the name of the Secret, Configuration that of the ValidatingWebhookConfiguration.
	Secret, Configuration string
	// Services are the names of the Services by which API servers reach the webhooks.
	Services []string
	// Lifetime is that of a certificate, Period how often Secret and configuration are read.
	Lifetime, Period time.Duration
}

// Keeper keeps the certificate of one replica.
type Keeper struct {
	options Options
	current atomic.Pointer[tls.Certificate]
}

// New returns a Keeper that has no certificate until Start has found or made one.
func New(options Options) *Keeper { return &Keeper{options: options} }

// GetCertificate is for [tls.Config].
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := k.current.Load(); current != nil {
		return current, nil
	}
	return nil, errNone
}

var errNone = errors.New("there is no certificate yet")

// Check is for probes: it fails until there is a certificate that the configuration trusts.
func (k *Keeper) Check(*http.Request) error {
	_, err := k.GetCertificate(nil)
	return err
}

// Start keeps the certificate until the context ends. What fails is logged and tried again.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		wait := k.options.Period
		if err := k.keep(ctx); err != nil && ctx.Err() == nil {
			wait = min(wait, time.Second)
			// Another replica was faster: what it wrote is read at the next attempt.
			if !apierrors.IsConflict(err) {
				klog.FromContext(ctx).Error(err, "Keeping the certificate of the webhook")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// keep rotates what is due, and shows a certificate only when the configuration trusts it.
func (k *Keeper) keep(ctx context.Context) error {
	stored, err := k.rotated(ctx)
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", k.options.Namespace, k.options.Secret, err)
	}
	if err := k.trust(ctx, stored.bundle); err != nil {
		return fmt.Errorf("ValidatingWebhookConfiguration %s: %w", k.options.Configuration, err)
	}
	k.current.Store(&stored.current.Certificate)
	return nil
}

// rotated returns what the Secret has, after the rotation that is due.
func (k *Keeper) rotated(ctx context.Context) (*contents, error) {
	secrets := k.options.Client.CoreV1().Secrets(k.options.Namespace)
	secret, err := secrets.Get(ctx, k.options.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w; apply the manifests again, which have it without data", err)
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	stored, unusable := read(secret.Data, k.names(), now)
	changed, err := k.rotate(stored, now)
	if err != nil || !changed {
		return stored, err
	}
	if unusable != nil {
		klog.FromContext(ctx).Info("A certificate of the webhook can't be shown and is made anew", "secret", klog.KObj(secret), "why", unusable.Error())
	}
	secret.Data = stored.write()
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Rotated the certificate of the webhook", "secret", klog.KObj(secret), "expires", stored.current.Leaf.NotAfter)
	return stored, nil
}

// rotate replaces a certificate that has a third of its lifetime left, or is missing, by the next one.
func (k *Keeper) rotate(c *contents, now time.Time) (changed bool, err error) {
	third := k.options.Lifetime / 3
	lasts := func(p *pair) bool { return p != nil && p.Leaf.NotAfter.Sub(now) > third }
	if lasts(c.current) && c.next != nil {
		return c.trust(now), nil
	}
	if !lasts(c.current) {
		c.current, c.next = c.next, nil
	}
	if !lasts(c.current) {
		// Nothing was trusted in time: the first certificate, or none of the replicas ran for long.
		if c.current, err = newPair(k.names(), now, 2*third); err != nil {
			return false, err
		}
	}
	if c.next, err = newPair(k.names(), now, 3*third); err != nil {
		return false, err
	}
	c.trust(now)
	return true, nil
}

// names are those by which API servers know the webhook.
func (k *Keeper) names() []string {
	var names []string
	for _, service := range k.options.Services {
		names = append(names, service+"."+k.options.Namespace+".svc")
	}
	return names
}

// trust adds the certificates to the webhooks of the configuration that the Services answer for. Nothing is
// written where they are trusted, so that a replica that is late does not take back what another one wrote.
func (k *Keeper) trust(ctx context.Context, trusted bundle) error {
	client := k.options.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration, err := client.Get(ctx, k.options.Configuration, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var changed []map[string]any
	for i := range configuration.Webhooks {
		hook := &configuration.Webhooks[i]
		if k.answers(hook.ClientConfig.Service) && !parse(hook.ClientConfig.CABundle).contains(trusted...) {
			changed = append(changed, map[string]any{"name": hook.Name, "clientConfig": map[string]any{"caBundle": trusted.encoded()}})
		}
	}
	if len(changed) == 0 {
		return nil
	}
	// Webhooks are merged by their names. The version keeps the patch from adding one that was just removed.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": configuration.ResourceVersion}, "webhooks": changed,
	})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, k.options.Configuration, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (k *Keeper) answers(service *admissionv1.ServiceReference) bool {
	return service != nil && service.Namespace == k.options.Namespace && slices.Contains(k.options.Services, service.Name)
}

// The keys of the Secret.
const (
	certificateKey     = corev1.TLSCertKey
	privateKey         = corev1.TLSPrivateKeyKey
	nextCertificateKey = "next.crt"
	nextPrivateKey     = "next.key"
	bundleKey          = "ca.crt"
)
