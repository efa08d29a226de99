// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/render"
)

// guardGrace is long enough for API servers that nobody holds up.
const guardGrace = 3 * time.Second

// guard is the webhook as an overlay renders it, with replicas on this machine.
type guard struct {
	c            *cluster
	objects      []*unstructured.Unstructured
	certificates string
	replicas     []*replica
}

// replica is a process.
type replica struct {
	*controlplane.Process
	port int
}

// installGuard applies the overlay, but for what asks the webhook: nobody is asked yet.
func (c *cluster) installGuard(t *testing.T) *guard {
	t.Helper()
	g := &guard{c: c, certificates: t.TempDir()}
	var err error
	g.objects, err = render.Kustomization(filepath.Join(manifests, "overlays", "webhook-guard"))
	require.NoError(t, err)
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	require.NoError(t, err)
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate} {
		require.NoError(t, os.WriteFile(filepath.Join(g.certificates, name), content, 0o600))
	}
	for _, object := range g.objects {
		if group := object.GroupVersionKind().Group; group == "rbac.authorization.k8s.io" || object.GetKind() == "Namespace" || object.GetKind() == "ServiceAccount" {
			c.apply(t, object)
		}
	}
	return g
}

// startReplica runs the program with the rendered flags, but for the paths and addresses of this machine, and for times.
func (g *guard) startReplica(t *testing.T) *replica {
	t.Helper()
	deployment, err := render.Find(g.objects, "Deployment", "celset-webhook")
	require.NoError(t, err)
	args, err := render.Args(deployment)
	require.NoError(t, err)
	require.Contains(t, args, "--guard-allocations")
	kubeconfig, err := g.c.KubeconfigFor(webhookAccount)
	require.NoError(t, err)
	ports, err := controlplane.FreePorts(3)
	require.NoError(t, err)
	local := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	args = append(slices.DeleteFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "--cert-dir=") || strings.HasPrefix(arg, "--guard-address=")
	}), "--kubeconfig="+kubeconfig, "--cert-dir="+g.certificates, "--webhook-bind-host=127.0.0.1", fmt.Sprintf("--webhook-port=%d", ports[0]),
		"--guard-address="+local(ports[0]), "--health-probe-bind-address="+local(ports[1]), "--metrics-bind-address="+local(ports[2]), "--metrics-secure=false",
		"--guard-grace="+guardGrace.String(), "--guard-lease-duration=3s", "--guard-renew-deadline=2s", "--guard-retry-period=500ms")
	p, err := g.c.StartProgram(t.Context(), controlplane.Program{
		Name: fmt.Sprintf("guard-%d", len(g.replicas)+1), Binary: webhook, Args: args, Endpoint: "http://" + local(ports[2]), Grace: 10 * time.Second,
		Ready: func(ctx context.Context, _ *controlplane.Process) error {
			return get(ctx, "http://"+local(ports[1])+"/readyz")
		},
	})
	require.NoError(t, err)
	r := &replica{p, ports[0]}
	g.replicas = append(g.replicas, r)
	return r
}

func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// ask has the API server ask a replica about allocations, and none about anything else.
func (g *guard) ask(t *testing.T, r *replica) {
	t.Helper()
	object, err := render.Find(g.objects, "ValidatingWebhookConfiguration", "celset-webhook")
	require.NoError(t, err)
	object = object.DeepCopy()
	hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	require.NoError(t, err)
	hooks = slices.DeleteFunc(hooks, func(hook any) bool { return hook.(map[string]any)["name"] != "allocations.celset.dev" })
	require.Len(t, hooks, 1)
	bundle, err := os.ReadFile(filepath.Join(g.certificates, "ca.crt"))
	require.NoError(t, err)
	hooks[0].(map[string]any)["clientConfig"] = map[string]any{
		"url": fmt.Sprintf("https://localhost:%d/guard-allocations", r.port), "caBundle": base64.StdEncoding.EncodeToString(bundle),
	}
	object.SetAnnotations(nil)
	require.NoError(t, unstructured.SetNestedSlice(object.Object, hooks, "webhooks"))
	g.c.apply(t, object)
}

// waitUntilActive waits until an allocation of a device that a claim has is refused because of that, and not stored
// meanwhile, since it is a dry run.
func (g *guard) waitUntilActive(t *testing.T) {
	t.Helper()
	g.c.allocate(t, "owner", "probe.example.com")
	probe := g.c.createClaim(t, "probe")
	probe.Status.Allocation = allocationOf("probe.example.com")
	eventually(t, "the guard judges", func(ctx context.Context) (bool, error) {
		_, err := g.c.claims().UpdateStatus(ctx, probe, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "device probe.example.com/pool/device is in use: claim default/owner"), nil
	})
}

func (c *cluster) claims() resourceclient.ResourceClaimInterface {
	return c.Client().ResourceV1().ResourceClaims(namespace)
}

// createClaim creates a claim that nobody allocates.
func (c *cluster) createClaim(t *testing.T, name string) *resourceapi.ResourceClaim {
	t.Helper()
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "none"}}}
	claim, err := c.claims().Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	return claim
}

// allocationOf has the only device of a driver that publishes nothing.
func allocationOf(driver string) *resourceapi.AllocationResult {
	return &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "one", Driver: driver, Pool: "pool", Device: "device"}},
	}}
}

// allocate gives the device to a claim. As long as the guard is not active, it is tried again.
func (c *cluster) allocate(t *testing.T, name, driver string) {
	t.Helper()
	claim := c.createClaim(t, name)
	claim.Status.Allocation = allocationOf(driver)
	eventually(t, "claim "+name+" is allocated", func(ctx context.Context) (bool, error) {
		_, err := c.claims().UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err == nil, nil
	})
}

// judged is how many writes the guard has answered with an outcome, on all replicas that run.
func (g *guard) judged(t *testing.T, outcome string) int {
	t.Helper()
	pattern := regexp.MustCompile(`(?m)^celset_guard_judgement_duration_seconds_count\{outcome="` + outcome + `"\} (\d+)`)
	sum := 0
	for _, r := range g.replicas {
		select {
		case <-r.Done():
			continue
		default:
		}
		content, err := r.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		found := pattern.FindSubmatch(content)
		require.NotNil(t, found, string(content))
		n, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		sum += n
	}
	return sum
}
