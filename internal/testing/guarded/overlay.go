// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/render"
)

const (
	// Registration is the name of what tells the API server whom to ask.
	Registration = "celset-webhook"
	// Hook is the webhook that is asked about allocations.
	Hook = "allocations.celset.dev"
)

// Overlay is what the overlay renders, and a certificate for this machine.
type Overlay struct {
	objects []*unstructured.Unstructured
	// certificates is the directory of the files, as the program wants them.
	certificates string
}

// The files of certificates.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	authorityFile   = "ca.crt"
)

// Render renders the overlay, and writes a certificate into the directory.
func Render(dir string) (*Overlay, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, err
	}
	objects, err := render.Kustomization(filepath.Join(root, "manifests", "overlays", "webhook-guard"))
	if err != nil {
		return nil, err
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{loopback}, nil)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{certificateFile: certificate, keyFile: key, authorityFile: certificate} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return &Overlay{objects: objects, certificates: dir}, nil
}

// Certificate is what all replicas show, for whoever stands between them and the API server.
func (o *Overlay) Certificate() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(filepath.Join(o.certificates, certificateFile), filepath.Join(o.certificates, keyFile))
}

// Install stores the namespace, the account and its rights. Nobody is asked yet.
func (o *Overlay) Install(ctx context.Context, config *rest.Config) error {
	for _, object := range o.objects {
		if object.GroupVersionKind().Group != "rbac.authorization.k8s.io" && !slices.Contains([]string{"Namespace", "ServiceAccount"}, object.GetKind()) {
			continue
		}
		if err := apply(ctx, config, object); err != nil {
			return err
		}
	}
	return nil
}

// Ask has the API server ask at an address, host and port, about allocations, and nobody about anything else.
func (o *Overlay) Ask(ctx context.Context, config *rest.Config, address string) error {
	object, err := render.Find(o.objects, "ValidatingWebhookConfiguration", Registration)
	if err != nil {
		return err
	}
	object = object.DeepCopy()
	hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return err
	}
	hooks = slices.DeleteFunc(hooks, func(hook any) bool { return hook.(map[string]any)["name"] != Hook })
	if len(hooks) != 1 {
		return fmt.Errorf("%d webhooks in the overlay are called %s, and not one", len(hooks), Hook)
	}
	bundle, err := os.ReadFile(filepath.Join(o.certificates, authorityFile))
	if err != nil {
		return err
	}
	hooks[0].(map[string]any)["clientConfig"] = map[string]any{
		"url": "https://" + address + "/guard-allocations", "caBundle": base64.StdEncoding.EncodeToString(bundle),
	}
	if err := unstructured.SetNestedSlice(object.Object, hooks, "webhooks"); err != nil {
		return err
	}
	return apply(ctx, config, object)
}

func apply(ctx context.Context, config *rest.Config, object *unstructured.Unstructured) error {
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		return err
	}
	_, err = controlplane.Apply(ctx, config, content, controlplane.ApplyOptions{})
	return err
}
