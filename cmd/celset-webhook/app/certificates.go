// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/celset/celset/cmd/internal/certificates"
	"github.com/celset/celset/internal/serving/managed"
)

// The names of the objects in manifests/webhook.
const (
	secretName        = "celset-webhook-certificates"
	configurationName = "celset-webhook"
	serviceName       = "celset-webhook"
	guardServiceName  = "celset-webhook-guard"
)

// Values of the flag for the source of the serving certificate.
const (
	fromSelf  = "self"
	fromFiles = "files"
)

// certificateOptions holds the flags for the webhook's serving certificate.
type certificateOptions struct {
	from               string
	dir, name, keyName string
	lifetime           time.Duration
}

func newCertificateOptions() certificateOptions {
	return certificateOptions{
		from: fromSelf, dir: "/certificates", name: "tls.crt", keyName: "tls.key",
		lifetime: certificates.DefaultLifetime,
	}
}

func (o *certificateOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.from, "certificate-source", o.from, "Source of the certificate of the webhooks. With self, the program creates and rotates the certificate, and writes the CA bundle into the ValidatingWebhookConfiguration "+configurationName+". With files, the program reads the certificate from --cert-dir.")
	flags.StringVar(&o.dir, "cert-dir", o.dir, "With --certificate-source=files, the directory of the certificate and its key. The program reads the files again when they change.")
	flags.StringVar(&o.name, "cert-name", o.name, "File name of the certificate.")
	flags.StringVar(&o.keyName, "key-name", o.keyName, "File name of the key.")
	flags.DurationVar(&o.lifetime, lifetimeFlag, o.lifetime, "With --certificate-source=self, the period for which a certificate is valid. The certificate is replaced after two thirds of the period.")
	// Only tests use this flag, to follow certificates for several lifetimes.
	_ = flags.MarkHidden(lifetimeFlag)
}

const (
	lifetimeFlag = "certificate-lifetime"
	minLifetime  = 10 * time.Second
)

func (o *certificateOptions) validate() error {
	if o.from != fromSelf && o.from != fromFiles {
		return fmt.Errorf("--certificate-source: %q is unknown; use self or files", o.from)
	}
	if o.lifetime < minLifetime {
		return fmt.Errorf("--%s: %s is too short; use at least %s", lifetimeFlag, o.lifetime, minLifetime)
	}
	return nil
}

// identity returns the source of the server's certificate, and a check for /readyz that fails until the certificate exists. For
// certificate files the check always succeeds, because the server does not start if the files are missing.
func (o *certificateOptions) identity(config *rest.Config, namespace string) (func() (managed.Identity, error), healthz.Checker, error) {
	if o.from == fromFiles {
		return managed.Files(filepath.Join(o.dir, o.name), filepath.Join(o.dir, o.keyName)), healthz.Ping, nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("client for certificates: %w", err)
	}
	keeper := certificates.New(certificates.Options{
		Client: client, Namespace: namespace, Secret: secretName, Configuration: configurationName,
		Services: []string{serviceName, guardServiceName}, Lifetime: o.lifetime,
		// The Keeper rotates after each third of the lifetime. This period gives it at least 30 checks in each third.
		Period: min(certificates.DefaultPeriod, o.lifetime/90),
	})
	return func() (managed.Identity, error) { return keeper, nil }, keeper.Check, nil
}
