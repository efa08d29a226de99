// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package celsetwebhook

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/pkg/features"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cmd/celset-webhook/app"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// Names of the objects in manifests/webhook.
const (
	manifests         = "../../../manifests/webhook"
	serverName        = "celset-webhook.celset-system.svc"
	secretName        = "celset-webhook-certificates"
	configurationName = "celset-webhook"
)

// cluster is a control plane with a real API server.
type cluster struct {
	*env.Env
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{env.Start(t, controlplane.Options{
		SkipKwok: true, SkipControllerManager: true, Users: []controlplane.User{env.Webhook},
		APIServerArgs: []string{"--runtime-config=resource.k8s.io/v1beta2=true,scheduling.k8s.io/v1beta1=true"},
		// Without these gates, the API server would drop the fields that the webhook has to check for names in celset's domain.
		FeatureGates: minor.TurnOn(features.DRADerivedAttributes, features.DRAConsumableCapacity, features.GenericWorkload, features.TopologyAwareWorkloadScheduling),
	})}
}

// warnings collects the warnings in responses of the API server.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

// apply applies a manifest. It returns the warnings that kubectl would show.
func (c *cluster) apply(t *testing.T, manifest string, options controlplane.ApplyOptions) ([]string, error) {
	t.Helper()
	seen := &warnings{}
	config := rest.CopyConfig(c.RESTConfig())
	config.WarningHandler = seen
	_, err := controlplane.Apply(t.Context(), config, []byte(manifest), options)
	return seen.texts, err
}

// rendered returns the output of "kubectl kustomize" for an overlay. files are the certificate files that the overlay needs.
func (c *cluster) rendered(t *testing.T, overlay string, files map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	// The overlays refer to these two folders, so copy both.
	for _, folder := range []string{"webhook", "labels"} {
		require.NoError(t, os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join(manifests, "..", folder))))
	}
	dir := filepath.Join(root, "webhook")
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, overlay, name), content, 0o600))
	}
	var stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), env.Program(t, controlplane.Kubectl), "kustomize", filepath.Join(dir, overlay))
	command.Stderr = &stderr
	output, err := command.Output()
	require.NoError(t, err, stderr.String())
	return string(output)
}

// objectsIn returns the objects in a manifest.
func objectsIn(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var result []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object))
		if len(object.Object) > 0 {
			result = append(result, object)
		}
	}
	return result
}

func manifestOf(t *testing.T, objects ...*unstructured.Unstructured) string {
	t.Helper()
	var documents []string
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		documents = append(documents, string(document))
	}
	return strings.Join(documents, "---\n")
}

// certificate returns a self-signed certificate and its key for the DNS name of the webhook's Service, as files.
func certificate(t *testing.T) map[string][]byte {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(serverName, nil, nil)
	require.NoError(t, err)
	return map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}
}

// install applies an overlay, with certificate files if it needs them. The API server can't reach cluster IPs here, so install
// changes the Service to an external name for this host, and the webhook's port to port. It also sends updates of claims to the
// webhook, to test that the webhook admits them.
func (c *cluster) install(t *testing.T, overlay string, files map[string][]byte, port int) {
	t.Helper()
	asTheyAre := objectsIn(t, c.rendered(t, overlay, files))
	var changed []*unstructured.Unstructured
	for _, object := range asTheyAre {
		switch object.GetKind() {
		case "Service":
			object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case "ValidatingWebhookConfiguration":
			for _, hook := range object.Object["webhooks"].([]any) {
				require.NoError(t, unstructured.SetNestedField(hook.(map[string]any), int64(port), "clientConfig", "service", "port"))
				rule := hook.(map[string]any)["rules"].([]any)[0].(map[string]any)
				rule["operations"] = []any{"CREATE", "UPDATE"}
			}
		}
		changed = append(changed, object)
	}
	_, err := c.apply(t, manifestOf(t, changed...), controlplane.ApplyOptions{})
	require.NoError(t, err)
}

// A replica is a celset-webhook to start, with the RBAC rights in the manifests. port is the port of its webhooks.
type replica struct {
	port            int
	health, metrics string
	flags           []string
}

// replica returns a replica that is not started yet.
func (c *cluster) replica(t *testing.T) *replica {
	t.Helper()
	kubeconfig, err := c.KubeconfigFor(env.Webhook.Name)
	require.NoError(t, err)
	r := &replica{port: freePort(t), health: env.FreeAddress(t), metrics: env.FreeAddress(t)}
	r.flags = []string{
		"--kubeconfig=" + kubeconfig, fmt.Sprintf("--webhook-bind-address=localhost:%d", r.port), "--check-placements",
		"--health-probe-bind-address=" + r.health, "--metrics-bind-address=" + r.metrics, "--metrics-secure=false",
	}
	return r
}

// run starts the replica with its flags and the additional flags, and waits until it is ready. When stop is called, the replica
// must end without an error.
func (r *replica) run(t *testing.T, more ...string) (stop func() error) {
	t.Helper()
	stop = env.StartCommand(t, app.NewCommand(), append(r.flags, more...)...)
	require.Eventually(t, func() bool { return answers("http://" + r.health + "/readyz") }, 2*time.Minute, 50*time.Millisecond)
	require.True(t, answers("http://"+r.health+"/healthz"))
	return stop
}

// serve installs the overlay for a certificate from files, and starts a replica with this certificate.
func (c *cluster) serve(t *testing.T, files map[string][]byte) (r *replica, stop func() error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	r = c.replica(t)
	c.install(t, "secret", files, r.port)
	return r, r.run(t, "--certificate-source=files", "--cert-dir="+dir)
}

// waitForWebhook waits until the webhook rejects a wrong claim.
func (c *cluster) waitForWebhook(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := c.apply(t, claim("probe", 4, "1"), controlplane.ApplyOptions{DryRun: true})
		return apierrors.IsInvalid(err)
	}, 2*time.Minute, 50*time.Millisecond)
}

func answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().(*net.TCPAddr).Port
}

// claim returns a claim for devices of the class mla, with a constraint and its definition.
func claim(name string, count int, expression string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s}
spec:
  devices:
    requests: [{name: r, exactly: {deviceClassName: mla, allocationMode: ExactCount, count: %d}}]
    constraints: [{matchAttribute: celset.dev/a}]
    config: [%s]
`, name, count, definition("a", expression))
}

func definition(name, expression string) string {
	return parameters(fmt.Sprintf("{apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: %q, expression: %q}", name, expression))
}

func parameters(of string) string { return "{opaque: {driver: celset.dev, parameters: " + of + "}}" }

// class returns a DeviceClass with the entries in spec.config.
func class(name string, config ...string) string {
	return fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: %s}, spec: {config: [%s]}}\n", name, strings.Join(config, ", "))
}

// referring returns a claim that refers to a constraint of the class.
func referring(name, class, constraint string) string {
	return fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: %s}, spec: {devices: {"+
		"requests: [{name: r, exactly: {deviceClassName: %s}}], constraints: [{matchAttribute: celset.dev/%s}]}}}\n", name, class, constraint)
}

// deriving returns a claim with a derived attribute in celset's domain, and the constraint on it that the API server requires.
// request is the claim's request, in either form.
func deriving(name, request string) string {
	return fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: %s}, spec: {devices: {requests: [%s], constraints: [{matchAttribute: celset.dev/a}]}}}\n", name,
		strings.ReplaceAll(request, "DERIVED", "deviceClassName: mla, derivedAttributes: [{name: celset.dev/a, expression: \"true\"}]"))
}

var derivingRequests = []string{
	"{name: r, exactly: {DERIVED}}",
	"{name: r, firstAvailable: [{name: x, DERIVED}]}",
}
