// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates creates and rotates the certificates of a webhook's replicas, and makes the API server trust them.
//
//	keeper := certificates.New(certificates.Options{Client: client, Namespace: "celset-system", ...})
//	config := &tls.Config{GetCertificate: keeper.GetCertificate}
//	err := keeper.Start(ctx)
//
// The replicas share a Secret with the certificate in use, the next certificate, and the certificates that API servers should
// trust. Every replica may write it. A write names the resourceVersion that it replaces. If two replicas write, only one
// succeeds, so no leader is needed.
//
// # Rotation
//
// A certificate has three phases, each a third of its lifetime. It is first the next certificate, then in use, then only trusted.
// So API servers trust it before a replica uses it, and still trust it while slow replicas use it.
//
// # Rights
//
// The Secret must exist beforehand, so that the program needs no right to create Secrets. That right would give access to tokens
// of all accounts in the namespace. Each certificate is self-signed and no CA, so the keys in the Secret can't sign other
// certificates.
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
	// DefaultLifetime is the lifetime of a certificate.
	DefaultLifetime = 365 * 24 * time.Hour
	// DefaultPeriod is the time between reads of the Secret and the configuration.
	DefaultPeriod = 10 * time.Second
)

// Options configure a [Keeper].
type Options struct {
	Client kubernetes.Interface
	// Namespace is the namespace of the Secret and the Services.
	Namespace string
	// Secret is the name of the Secret. Configuration is the name of the ValidatingWebhookConfiguration.
	Secret, Configuration string
	// Services are the names of the Services that API servers use to reach the webhooks.
	Services []string
	// Lifetime is the lifetime of a certificate. Period is the time between reads of the Secret and the configuration.
	Lifetime, Period time.Duration
}

// Keeper provides a replica with the certificate that all replicas share, and takes part in its rotation.
type Keeper struct {
	options Options
	current atomic.Pointer[tls.Certificate]
}

// New returns a Keeper. It has no certificate until Start has found or created one.
func New(options Options) *Keeper { return &Keeper{options: options} }

// GetCertificate returns the certificate in use. It has the signature of the field GetCertificate of [tls.Config].
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := k.current.Load(); current != nil {
		return current, nil
	}
	return nil, errNone
}

var errNone = errors.New("the certificate does not exist yet")

// Check is a probe that fails until there is a certificate that the configuration trusts.
func (k *Keeper) Check(*http.Request) error {
	_, err := k.GetCertificate(nil)
	return err
}

// Start maintains the certificate until the context ends. It logs and retries failures.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		wait := k.options.Period
		if err := k.keep(ctx); err != nil && ctx.Err() == nil {
			wait = min(wait, time.Second)
			// A conflict means that another replica has written the Secret in the meantime. The next attempt reads the new contents.
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

// keep rotates the certificates if necessary. It serves a certificate only after the webhook configuration trusts it.
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

// rotated returns the contents of the Secret after any necessary rotation.
func (k *Keeper) rotated(ctx context.Context) (*contents, error) {
	secrets := k.options.Client.CoreV1().Secrets(k.options.Namespace)
	secret, err := secrets.Get(ctx, k.options.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w; apply the manifests again to create an empty Secret", err)
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
		klog.FromContext(ctx).Info("A certificate of the webhook can't be used, so a new one is created", "secret", klog.KObj(secret), "why", unusable.Error())
	}
	secret.Data = stored.write()
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Rotated the certificate of the webhook", "secret", klog.KObj(secret), "expires", stored.current.Leaf.NotAfter)
	return stored, nil
}

// rotate replaces the current certificate by the next one if it is missing or has at most a third of its lifetime left. It
// creates missing certificates.
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
		// Neither certificate lasts long enough: this is the first start, or no replica ran for a long time. So a new
		// certificate becomes the current one at once.
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

// names returns the DNS names of the webhook's Services.
func (k *Keeper) names() []string {
	var names []string
	for _, service := range k.options.Services {
		names = append(names, service+"."+k.options.Namespace+".svc")
	}
	return names
}

// trust adds the certificates to the caBundle of the webhooks that use Options.Services. If they are already there, trust
// writes nothing. Otherwise a slow replica would revert the write of another replica.
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
	// The patch merges webhooks by name. The resourceVersion keeps it from adding a webhook that was just removed.
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

// Keys in the data of the Secret.
const (
	certificateKey     = corev1.TLSCertKey
	privateKey         = corev1.TLSPrivateKeyKey
	nextCertificateKey = "next.crt"
	nextPrivateKey     = "next.key"
	bundleKey          = "ca.crt"
)
