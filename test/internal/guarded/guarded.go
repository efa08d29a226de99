// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guarded runs the guard, the webhook against double allocations, with the control plane of a test. The rights, flags
// and webhook configuration come from manifests/overlays/webhook-guard. Only paths, addresses and times differ.
//
//	overlay, err := guarded.Render(dir)
//	err = overlay.Install(ctx, cp.RESTConfig())
//	replica, err := overlay.Start(ctx, cp, guarded.Options{Name: "guard", Kubeconfig: kubeconfig, ...})
//	err = overlay.Ask(ctx, cp.RESTConfig(), replica.Address)
//
// The control plane must have the user env.Webhook. The kubeconfig is this user's.
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
	"strconv"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/render"
)

// request is the name of the only request in a claim from Claim.
const request = "one"

// Claim returns a claim that no scheduler allocates, for tests of the guard.
func Claim(name string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: request, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "none"}}}
	return claim
}

// Allocation returns an allocation for a claim from Claim. It contains the only device of a driver, which need not be
// published.
func Allocation(driver string) *resourceapi.AllocationResult {
	return &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: request, Driver: driver, Pool: "pool", Device: "device"}},
	}}
}

const (
	// Registration is the name of the ValidatingWebhookConfiguration.
	Registration = "celset-webhook"
	// Hook is the name of the webhook that judges allocations.
	Hook = "allocations.celset.dev"
)

// An Overlay holds the rendered objects, and a TLS certificate for this machine.
type Overlay struct {
	objects []*unstructured.Unstructured
	// certificates is the directory of the certificate files.
	certificates string
}

// The names of the files in the directory of certificates.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	authorityFile   = "ca.crt"
)

// Render renders the overlay, and writes a TLS certificate into the directory.
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

// Certificate returns the serving certificate of all replicas. A proxy between the API server and the replicas needs it.
func (o *Overlay) Certificate() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(filepath.Join(o.certificates, certificateFile), filepath.Join(o.certificates, keyFile))
}

// Install creates the namespace, the ServiceAccount and its rights. It does not create the ValidatingWebhookConfiguration.
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

// Ask creates the ValidatingWebhookConfiguration, with only the webhook for allocations. The API server then calls the webhook
// at the address (host and port).
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

// Binary is the name of the program. Build must have built it.
const Binary = "celset-webhook"

var loopback = net.IPv4(127, 0, 0, 1)

// Options configure a replica.
type Options struct {
	// Name is the name of the process, unique among running processes.
	Name string
	// Kubeconfig is the path of a kubeconfig with the credentials of the webhook's account, directly or through a proxy.
	Kubeconfig string
	// Grace is the value of --guard-grace, and Lease of --guard-lease-duration. The other durations of the lease are computed
	// from Lease.
	Grace, Lease time.Duration
	// Unready makes Start return as soon as the process runs, before it is ready.
	Unready bool
}

// A Replica is a process of the webhook. Process.Get can read its metrics at /metrics.
type Replica struct {
	*controlplane.Process
	// Address is the host and port of its webhooks.
	Address string
}

// Start starts a replica with the rendered flags. Only paths, addresses and times are changed.
func (o *Overlay) Start(ctx context.Context, cp *controlplane.ControlPlane, options Options) (*Replica, error) {
	deployment, err := render.Find(o.objects, "Deployment", "celset-webhook")
	if err != nil {
		return nil, err
	}
	args, err := render.Args(deployment)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(args, "--guard-allocations") {
		return nil, fmt.Errorf("the overlay starts no guard: %v", args)
	}
	ports, err := controlplane.FreePorts(3)
	if err != nil {
		return nil, err
	}
	webhooks, probes, metrics := local(ports[0]), local(ports[1]), local(ports[2])
	args = append(slices.DeleteFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "--guard-pod=")
	}),
		"--kubeconfig="+options.Kubeconfig, "--certificate-source=files", "--cert-dir="+o.certificates,
		"--webhook-bind-address="+webhooks,
		"--health-probe-bind-address="+probes, "--metrics-bind-address="+metrics, "--metrics-secure=false",
		"--guard-grace="+options.Grace.String(), "--guard-lease-duration="+options.Lease.String(),
		"--guard-renew-deadline="+(options.Lease*4/5).String(), "--guard-retry-period=500ms",
	)
	path := "/readyz"
	if options.Unready {
		path = "/healthz"
	}
	p, err := cp.StartProgram(ctx, controlplane.Program{
		Name: options.Name, Binary: Binary, Args: args, Endpoint: "http://" + metrics, Grace: 10 * time.Second,
		Ready: func(ctx context.Context, _ *controlplane.Process) error {
			return controlplane.Probe(ctx, "http://"+probes+path)
		},
	})
	if err != nil {
		return nil, err
	}
	return &Replica{Process: p, Address: webhooks}, nil
}

func local(port int) string { return net.JoinHostPort(loopback.String(), strconv.Itoa(port)) }

// IsActive reports whether this replica is the leader, which judges allocations.
func (r *Replica) IsActive(ctx context.Context) bool {
	metrics, err := r.Get(ctx, "/metrics")
	return err == nil && strings.Contains(string(metrics), "celset_guard_active 1")
}
