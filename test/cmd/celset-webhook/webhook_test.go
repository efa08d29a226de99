// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package celsetwebhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/admission/webhook"
	placementadmission "github.com/celset/celset/placement/admission"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

const refusedBy = `admission webhook "claims.celset.dev" denied the request: ResourceClaim.resource.k8s.io "%s" is invalid: `

// TestWebhook tests the webhook on a real API server, starting from the manifests.
func TestWebhook(t *testing.T) {
	c := startCluster(t)
	t.Run("manifests", func(t *testing.T) { requireApplicable(t, c) })
	for _, manifest := range []string{
		finalized(claim("earlier", 4, "1")), finalized(class("earlier", definition("a", "1"))),
	} {
		_, err := c.apply(t, manifest, controlplane.ApplyOptions{})
		require.NoError(t, err, "nobody checks yet")
	}
	files := certificate(t)
	r, stop := c.serve(t, files)
	c.waitForWebhook(t)

	t.Run("what a user sees", func(t *testing.T) {
		_, err := c.apply(t, claim("broken", 4, "devices.size() == 4 &&\n  devices.all(d, d.diver == 'mla')"), controlplane.ApplyOptions{})
		require.ErrorContains(t, err, fmt.Sprintf(refusedBy, "broken")+"spec.devices.config[0].opaque.parameters.expression: Invalid value: "+
			"ERROR: <input>:2:19: undefined field 'diver'\n"+
			" |   devices.all(d, d.diver == 'mla')\n"+
			" | ..................^")
		require.True(t, apierrors.IsInvalid(err))
		file := filepath.Join(t.TempDir(), "claim.yaml")
		require.NoError(t, os.WriteFile(file, []byte(claim("four", 4, "devices.size() == 4 &&\n  devices.all(d, d.diver == 'mla')")), 0o600))
		command := exec.CommandContext(t.Context(), env.Program(t, controlplane.Kubectl), "--kubeconfig="+c.Kubeconfig(), "apply", "-f", "claim.yaml")
		command.Dir = filepath.Dir(file)
		output, err := command.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, readFile(t, "../../../docs/install.md"), "\n$ kubectl apply -f claim.yaml\n"+string(output))
	})
	t.Run("what a user is warned of", func(t *testing.T) {
		texts, err := c.apply(t, claim("warned", 4, "devices[0] != devices[1]"), controlplane.ApplyOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"spec.devices.constraints[0]: a, line 1, column 8: the verdict may depend on the order of the devices; " +
			"each set is evaluated in one order only, the order of the requests and pools; use all or exists instead of positions"}, texts)
	})
	t.Run("other versions", func(t *testing.T) {
		_, err := c.apply(t, strings.Replace(claim("beta", 4, "1"), "k8s.io/v1", "k8s.io/v1beta2", 1), controlplane.ApplyOptions{})
		require.ErrorContains(t, err, fmt.Sprintf(refusedBy, "beta"))
	})
	t.Run("templates", func(t *testing.T) {
		_, err := c.apply(t, template(claim("broken", 4, "1")), controlplane.ApplyOptions{})
		require.ErrorContains(t, err, `"broken" is invalid: spec.spec.devices.config[0].opaque.parameters.expression`)
		_, err = c.apply(t, template(claim("right", 4, "true")), controlplane.ApplyOptions{})
		require.NoError(t, err)
	})
	t.Run("derived attributes", func(t *testing.T) {
		minor.NeedsGate(t, features.DRADerivedAttributes)
		for _, request := range derivingRequests {
			_, err := c.apply(t, deriving("derived", request), controlplane.ApplyOptions{})
			require.ErrorContains(t, err, fmt.Sprintf(refusedBy, "derived")+"spec.devices.requests[0].")
		}
	})
	t.Run("distinctAttribute", func(t *testing.T) {
		_, err := c.apply(t, strings.Replace(claim("distinct", 4, "true"), "matchA", "distinctA", 1), controlplane.ApplyOptions{})
		require.ErrorContains(t, err, "use matchAttribute: celset.dev/a")
	})
	t.Run("classes", func(t *testing.T) { requireClassesAreRead(t, c) })
	t.Run("groups", func(t *testing.T) { requireGroupsAreChecked(t, c) })
	t.Run("device attributes", func(t *testing.T) { requireAttributesAreChecked(t, c) })
	t.Run("pods", func(t *testing.T) { requirePodsAreWarnedOf(t, c) })
	t.Run("what was stored earlier", func(t *testing.T) { requireRatcheted(t, c) })
	t.Run("the other webhooks", func(t *testing.T) {
		for path, status := range map[string]int{
			webhook.ClaimPath: http.StatusOK, webhook.PodPath: http.StatusOK, webhook.GroupPath: http.StatusOK, webhook.AttributesPath: http.StatusOK, placementadmission.Path: http.StatusOK, "/": http.StatusNotFound,
		} {
			require.Equal(t, status, post(t, r, files["ca.crt"], path), path)
		}
		require.True(t, answers("http://"+r.metrics+"/metrics"))
	})
	t.Run("without it", func(t *testing.T) {
		require.NoError(t, stop())
		requireOthersAreNotHeldUp(t, c)
	})
	t.Run("groups without it", func(t *testing.T) {
		minor.NeedsVersion(t, "1.37", "scheduling.k8s.io/v1beta1")
		_, err := c.apply(t, group("late", "nodes.al(n)"), controlplane.ApplyOptions{})
		require.NoError(t, err)
	})
}

// requireApplicable makes the API server validate all manifests unchanged. cert-manager is not installed.
func requireApplicable(t *testing.T, c *cluster) {
	_, err := c.apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: celset-system}}", controlplane.ApplyOptions{})
	require.NoError(t, err)
	_, err = c.apply(t, c.rendered(t, "secret", certificate(t)), controlplane.ApplyOptions{DryRun: true})
	require.NoError(t, err)

	_, err = c.apply(t, c.rendered(t, "default", nil), controlplane.ApplyOptions{DryRun: true})
	require.NoError(t, err)

	kinds := map[string]int{}
	for _, object := range objectsIn(t, c.rendered(t, "cert-manager", nil)) {
		kinds[object.GetKind()]++
		if object.GroupVersionKind().Group == "cert-manager.io" {
			require.Equal(t, "celset-webhook", object.GetName())
			require.Equal(t, "celset-system", object.GetNamespace())
			continue
		}
		if object.GetKind() == "ValidatingWebhookConfiguration" {
			require.Equal(t, "celset-system/celset-webhook", object.GetAnnotations()["cert-manager.io/inject-ca-from"])
		}
		_, err := c.apply(t, manifestOf(t, object), controlplane.ApplyOptions{DryRun: true})
		require.NoError(t, err)
	}
	require.Equal(t, 1, kinds["Certificate"]*kinds["Issuer"]*kinds["Deployment"]*kinds["PodDisruptionBudget"])
}

// requireClassesAreRead checks that a claim may refer to a class that does not exist yet, and that a new class is effective at
// once.
func requireClassesAreRead(t *testing.T, c *cluster) {
	texts, err := c.apply(t, referring("early", "vendor", "ring4"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	require.Len(t, texts, 1)
	require.Contains(t, texts[0], `deviceclasses.resource.k8s.io "vendor" not found`)

	_, err = c.apply(t, class("vendor", definition("ring4", "devices.all(d)")), controlplane.ApplyOptions{})
	require.ErrorContains(t, err, `DeviceClass.resource.k8s.io "vendor" is invalid: spec.config[0].opaque.parameters.expression: Invalid value: ERROR: <input>:1:12`)
	_, err = c.apply(t, class("vendor", definition("ring4", "devices.all(d, d.driver == 'mla.example.com')")), controlplane.ApplyOptions{})
	require.NoError(t, err)
	texts, err = c.apply(t, referring("right", "vendor", "ring4"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, texts)
	_, err = c.apply(t, referring("misspelt", "vendor", "rin4"), controlplane.ApplyOptions{})
	require.ErrorContains(t, err, `Not found: "celset.dev/rin4"`)
}

// group returns a PodGroup that refers to the constraint in its annotation.
func group(name, expression string) string {
	return fmt.Sprintf("{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: %s, namespace: default, annotations: {celset.dev/node-set-constraint: "+
		"%q}}, spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: celset.dev/near}]}}}", name,
		"{apiVersion: celset.dev/v1alpha1, kind: CELNodeSetConstraint, name: near, expression: '"+expression+"'}")
}

// requireGroupsAreChecked checks that mistakes in an annotation are refused on write, and that definitions in a class are found.
func requireGroupsAreChecked(t *testing.T, c *cluster) {
	minor.NeedsVersion(t, "1.37", "scheduling.k8s.io/v1beta1")
	_, err := c.apply(t, group("broken", "nodes.al(n)"), controlplane.ApplyOptions{})
	require.ErrorContains(t, err, `admission webhook "podgroups.celset.dev" denied the request: PodGroup.scheduling.k8s.io "broken" is invalid: `+
		"metadata.annotations[celset.dev/node-set-constraint].expression: Invalid value: ERROR: <input>:1:9: undeclared reference to 'al'")
	texts, err := c.apply(t, group("right", "nodes.size() > 1"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, texts)
	_, err = c.apply(t, group("right", "nodes.al(n)"), controlplane.ApplyOptions{})
	require.ErrorContains(t, err, `denied the request: PodGroup.scheduling.k8s.io "right" is invalid: `)

	referring := "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: refers, namespace: default}, spec: {schedulingPolicy: {gang: {minCount: 2}}, " +
		"schedulingConstraints: {topology: [{key: celset.dev/one_rack}]}}}"
	texts, err = c.apply(t, referring, controlplane.ApplyOptions{DryRun: true})
	require.NoError(t, err)
	require.Len(t, texts, 1)
	require.Contains(t, texts[0], `no valid CELNodeSetConstraint defines "one_rack"`)
	_, err = c.apply(t, class("racks", "{opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELNodeSetConstraint, name: one_rack, "+
		"expression: nodes.size() > 1}}}"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	texts, err = c.apply(t, referring, controlplane.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, texts)
}

// requireAttributesAreChecked checks that an expression that does not compile is refused on write.
func requireAttributesAreChecked(t *testing.T, c *cluster) {
	definition := readFile(t, "../../../manifests/scheduler/crds/celset.dev_deviceattributes.yaml")
	require.NoError(t, hub.InstallDefinitions(t.Context(), c.RESTConfig(), []byte(definition)))
	object := func(expression string) string {
		return "{apiVersion: celset.dev/v1alpha1, kind: DeviceAttributes, metadata: {name: chips}, spec: {driver: chip.example.com, " +
			"attributes: [{name: column, expression: '" + expression + "'}]}}"
	}
	_, err := c.apply(t, object("device.index"), controlplane.ApplyOptions{})
	require.ErrorContains(t, err, `admission webhook "deviceattributes.celset.dev" denied the request: DeviceAttributes.celset.dev "chips" is invalid: `+
		"spec: Invalid value: spec.attributes[0].expression of attribute column: ERROR: <input>:1:7: undefined field")
	texts, err := c.apply(t, object("1"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, texts)
}

func requirePodsAreWarnedOf(t *testing.T, c *cluster) {
	pod := func(name, scheduler string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {schedulerName: %s, "+
			"containers: [{name: c, image: none}], resourceClaims: [{name: r, resourceClaimTemplateName: right}]}}", name, scheduler)
	}
	texts, err := c.apply(t, pod("ours", "celset-scheduler"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, texts)
	texts, err = c.apply(t, pod("stock", "default-scheduler"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{`spec.schedulerName: the scheduler "default-scheduler" does not support the CEL device constraint of ` +
		`ResourceClaimTemplate right, so the pod would never be scheduled; use celset-scheduler`}, texts)
}

// requireRatcheted changes and deletes stored objects that would be refused now.
func requireRatcheted(t *testing.T, c *cluster) {
	claims, classes := c.Client().ResourceV1().ResourceClaims("default"), c.Client().ResourceV1().DeviceClasses()
	patch := func(patch string) error {
		_, claimErr := claims.Patch(t.Context(), "earlier", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, claimErr)
		_, err := classes.Patch(t.Context(), "earlier", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	require.NoError(t, patch(`{"metadata": {"labels": {"a": "b"}}}`))
	stored, err := claims.Get(t.Context(), "earlier", metav1.GetOptions{})
	require.NoError(t, err)
	stored.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{}
	_, err = claims.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
	require.NoError(t, err)

	texts, err := c.apply(t, finalized(class("earlier", definition("a", "1"), definition("b", "devices.all(d, d.driver == 'mla.example.com')"))), controlplane.ApplyOptions{})
	require.NoError(t, err)
	require.Len(t, texts, 1)
	require.Contains(t, texts[0], "the stored object already has this mistake: spec.config[0]")
	_, err = c.apply(t, finalized(class("earlier", definition("a", "2"), definition("b", "devices.all(d, d.driver == 'mla.example.com')"))), controlplane.ApplyOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)

	require.NoError(t, claims.Delete(t.Context(), "earlier", metav1.DeleteOptions{}))
	require.NoError(t, classes.Delete(t.Context(), "earlier", metav1.DeleteOptions{}))
	require.NoError(t, patch(`{"metadata": {"finalizers": null}}`))
	_, err = claims.Get(t.Context(), "earlier", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	_, err = classes.Get(t.Context(), "earlier", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
}

// requireOthersAreNotHeldUp checks that other objects are admitted while no replica answers.
func requireOthersAreNotHeldUp(t *testing.T, c *cluster) {
	_, err := c.apply(t, claim("late", 4, "true"), controlplane.ApplyOptions{})
	require.ErrorContains(t, err, `failed calling webhook "claims.celset.dev"`)
	for name, manifest := range map[string]string{
		"claim": strings.NewReplacer("celset.dev/a", "example.com/a", "driver: celset.dev", "driver: example.com").Replace(claim("plain", 4, "true")),
		"class": class("plain", "{opaque: {driver: example.com, parameters: {}}}"),
		"pod": "{apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {containers: [{name: c, image: none}], " +
			"resourceClaims: [{name: r, resourceClaimName: earlier}]}}",
	} {
		_, err := c.apply(t, manifest, controlplane.ApplyOptions{})
		require.NoError(t, err, name)
	}
	_, err = c.Client().ResourceV1().DeviceClasses().Patch(t.Context(), "vendor", types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`), metav1.PatchOptions{})
	require.NoError(t, err, "the definition is as it was")
	_, err = c.apply(t, class("vendor", definition("ring4", "false")), controlplane.ApplyOptions{})
	require.ErrorContains(t, err, `failed calling webhook "deviceclasses.celset.dev"`)
}

// post sends a body that is not an AdmissionReview, and returns the status of the response.
func post(t *testing.T, r *replica, authority []byte, path string) int {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(authority))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: serverName}}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("https://localhost:%d%s", r.port, path), strings.NewReader("{}"))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.StatusCode
}

// template returns a template of a claim.
func template(claim string) string {
	before, spec, _ := strings.Cut(claim, "spec:\n")
	return strings.Replace(before, "kind: ResourceClaim", "kind: ResourceClaimTemplate", 1) + "spec:\n  spec:\n  " + strings.ReplaceAll(spec, "\n  ", "\n    ")
}

func finalized(manifest string) string {
	return strings.Replace(manifest, "name: earlier}", "name: earlier, finalizers: [celset.dev/test]}", 1)
}

// TestExamples checks that the webhook accepts the examples without warnings.
func TestExamples(t *testing.T) {
	c := startCluster(t)
	c.serve(t, certificate(t))
	c.waitForWebhook(t)
	_, err := c.apply(t, readFile(t, manifests+"/policy.yaml"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	waitForPolicy(t, c)
	for _, name := range []string{"deviceclasses", "grid-2x2", "ring-4-connected", "ring-4-near"} {
		texts, err := c.apply(t, readFile(t, "../../../manifests/examples/"+name+".yaml"), controlplane.ApplyOptions{})
		require.NoError(t, err)
		require.Empty(t, texts, name)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}
