// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
)

const (
	webhookProgram = "celset-webhook"
	// webhookUser is the user name of celset-webhook's ServiceAccount, which webhookManifests grant rights to.
	webhookUser = "system:serviceaccount:celset-system:celset-webhook"
	// webhookManifests is the folder with the webhook's rights and configuration, relative to the module root.
	webhookManifests = "manifests/webhook/base"
)

// startWebhook starts celset-webhook with the RBAC rights of its deployment, and makes the API server call it. The
// configuration gets the webhook's URL instead of its Service, because the cluster has no network.
func startWebhook(ctx context.Context, cp *controlplane.ControlPlane) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	rights, err := os.ReadFile(filepath.Join(root, webhookManifests, "rbac.yaml"))
	if err != nil {
		return err
	}
	if _, err := controlplane.Apply(ctx, cp.RESTConfig(), rights, controlplane.ApplyOptions{}); err != nil {
		return err
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return fmt.Errorf("certificate of %s: %w", webhookProgram, err)
	}
	dir := filepath.Join(cp.DataDir(), webhookProgram)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	port, err := runWebhook(ctx, cp, dir)
	if err != nil {
		return err
	}
	configuration, err := os.ReadFile(filepath.Join(root, webhookManifests, "webhooks.yaml"))
	if err != nil {
		return err
	}
	if configuration, err = reachedAt(configuration, port, certificate); err != nil {
		return fmt.Errorf("configuration of %s: %w", webhookProgram, err)
	}
	_, err = controlplane.Apply(ctx, cp.RESTConfig(), configuration, controlplane.ApplyOptions{})
	return err
}

// runWebhook starts celset-webhook with the certificate in the directory dir, and returns its port.
func runWebhook(ctx context.Context, cp *controlplane.ControlPlane, dir string) (port int, err error) {
	kubeconfig, err := cp.KubeconfigFor(webhookUser)
	if err != nil {
		return 0, err
	}
	ports, err := controlplane.FreePorts(2)
	if err != nil {
		return 0, err
	}
	health := fmt.Sprintf("localhost:%d", ports[1])
	_, err = cp.StartProgram(ctx, controlplane.Program{
		Name: webhookProgram, Binary: webhookProgram, Grace: 2 * time.Second, Endpoint: "http://" + health,
		Args: []string{
			"--kubeconfig=" + kubeconfig, fmt.Sprintf("--webhook-bind-address=localhost:%d", ports[0]),
			"--certificate-source=files", "--cert-dir=" + dir, "--health-probe-bind-address=" + health, "--metrics-bind-address=0",
		},
		Ready: func(ctx context.Context, _ *controlplane.Process) error {
			return controlplane.Probe(ctx, "http://"+health+"/readyz")
		},
	})
	return ports[0], err
}

// reachedAt returns the ValidatingWebhookConfiguration with the URL and certificate of the webhook in place of its Service.
func reachedAt(configuration []byte, port int, certificate []byte) ([]byte, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(configuration, &object.Object); err != nil {
		return nil, err
	}
	hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return nil, err
	}
	for _, hook := range hooks {
		fields, _ := hook.(map[string]any)
		path, _, err := unstructured.NestedString(fields, "clientConfig", "service", "path")
		if err != nil {
			return nil, err
		}
		fields["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://localhost:%d%s", port, path), "caBundle": certificate}
	}
	object.Object["webhooks"] = hooks
	return yaml.Marshal(object.Object)
}
