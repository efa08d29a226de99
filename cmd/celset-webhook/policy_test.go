// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/minor"
)

// waitForPolicy waits until the API server has heard of all three policies.
func waitForPolicy(t *testing.T, c *cluster) {
	t.Helper()
	wrong := claim("probe", 4, " ")
	for _, manifest := range []string{wrong, template(wrong), class("probe", definition("a", " "))} {
		require.Eventually(t, func() bool {
			_, err := c.apply(t, manifest, controlplane.ApplyOptions{DryRun: true})
			return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
		}, time.Minute, 50*time.Millisecond)
	}
}

// TestPolicy: the policy works without the webhook.
func TestPolicy(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	c := startCluster(t)
	_, err := c.apply(t, finalized(class("earlier", parameters("{kind: Ring}"))), controlplane.ApplyOptions{})
	require.NoError(t, err, "nobody checks yet")
	_, err = c.apply(t, readFile(t, manifests+"/policy.yaml"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	waitForPolicy(t, c)

	t.Run("definitions", func(t *testing.T) { requireDefinitions(t, c) })
	t.Run("defaults", func(t *testing.T) { requireDefaults(t, c) })
	t.Run("references", func(t *testing.T) { requireReferences(t, c) })
	t.Run("derived attributes", func(t *testing.T) { requireNoDerivedAttributes(t, c) })
	t.Run("what was stored earlier", func(t *testing.T) {
		classes := c.Client().ResourceV1().DeviceClasses()
		_, err := c.apply(t, finalized(class("earlier", parameters("{kind: Ring}"), definition("a", "true"))), controlplane.ApplyOptions{})
		require.NoError(t, err, "the other definition is right")
		_, err = c.apply(t, finalized(class("earlier", parameters("{kind: Mesh}"))), controlplane.ApplyOptions{})
		require.ErrorContains(t, err, "kind: CELDeviceConstraint")
		require.NoError(t, classes.Delete(t.Context(), "earlier", metav1.DeleteOptions{}))
		_, err = classes.Patch(t.Context(), "earlier", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = classes.Get(t.Context(), "earlier", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
	})
}

// byItself: the API server's own validation comes before policies and webhooks.
const byItself = "without a policy"

// requireDefinitions: those in claims, templates and classes have the same rules.
func requireDefinitions(t *testing.T, c *cluster) {
	const typed = "apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, "
	const fields, kind, name, expression = "must be an object with the fields", "and kind: CELDeviceConstraint", "must be a C identifier", "must not be empty"
	for entry, want := range map[string]string{
		definition("a", "devices.all(d, d.driver == 'a')"): "",
		"{opaque: {driver: example.com, parameters: {}}}":  "",
		// That it does not compile takes the webhook.
		definition("a", "devices.all(d)"):                                                                 "",
		definition("a", strings.Repeat("a", 9*1024)):                                                      "",
		parameters("[]"):                                                                                  byItself,
		parameters("{" + typed + `name: a, expression: "true", extra: 1}`):                                fields,
		parameters("{" + typed + `name: a, Expression: "true"}`):                                          fields,
		parameters("{" + typed + `name: a}`):                                                              expression,
		parameters("{" + typed + `name: a, expression: true}`):                                            expression,
		parameters("{" + typed + `expression: "true"}`):                                                   name,
		parameters("{" + typed + `name: null, expression: "true"}`):                                       name,
		parameters(`{name: a, expression: "true"}`):                                                       kind,
		parameters(`{apiVersion: celset.dev/v2, kind: CELDeviceConstraint}`):                              kind,
		parameters(`{apiVersion: celset.dev/v1alpha1, kind: Ring}`):                                       kind,
		parameters("{" + typed + `name: a, expression: "true", default: false}`):                          "",
		parameters("{" + typed + `name: a, expression: "true", default: yes please}`):                     "default",
		parameters("{" + typed + `name: a, expression: "true", variables: [{name: b, expression: "1"}]}`): "",
		parameters("{" + typed + `name: a, expression: "true", onError: NodeDoesNotFit}`):                 "",
		parameters("{" + typed + `name: a, expression: "true", onError: Ignore}`):                         "onError",
		parameters("{" + typed + `name: a, expression: "true", onError: 1}`):                              "onError",
		definition("4", "true"):                                                                           name,
		definition("a-b", "true"):                                                                         name,
		definition(strings.Repeat("n", 33), "true"):                                                       name,
		definition("a", " \n\t"):                                                                          expression,
		definition("a", "true") + ", " + definition("a", "false"):                                         "same name",
		definition("a", "true") + ", " + definition("b", "true"):                                          "",
		definition(strings.Repeat("n", 32), "true"):                                                       "",
	} {
		plain := claim("policy", 4, "true")
		plain = strings.Replace(plain, definition("a", "true"), entry, 1)
		for _, manifest := range []string{plain, template(plain), class("policy", entry)} {
			_, err := c.apply(t, manifest, controlplane.ApplyOptions{DryRun: true})
			requireRefusedByPolicy(t, err, want, entry)
		}
	}
}

// requireDefaults: only a class can have them.
func requireDefaults(t *testing.T, c *cluster) {
	entry := parameters(`{apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: a, expression: "true", default: true}`)
	plain := strings.Replace(claim("policy", 4, "true"), definition("a", "true"), entry, 1)
	for manifest, want := range map[string]string{
		plain: "can be a default", template(plain): "can be a default", class("policy", entry): "",
	} {
		_, err := c.apply(t, manifest, controlplane.ApplyOptions{DryRun: true})
		requireRefusedByPolicy(t, err, want, manifest)
	}
}

func requireReferences(t *testing.T, c *cluster) {
	for constraint, want := range map[string]string{
		"matchAttribute: example.com/a":                         "",
		"distinctAttribute: example.com/a":                      "",
		"matchAttribute: celset.dev/ring4":                      "",
		"matchAttribute: celset.dev/4":                          byItself,
		"matchAttribute: celset.dev/":                           byItself,
		"matchAttribute: celset.dev/a/b":                        "what follows celset.dev/",
		"distinctAttribute: celset.dev/ring4":                   "use matchAttribute",
		"matchAttribute: celset.dev/" + strings.Repeat("n", 33): byItself,
	} {
		plain := strings.Replace(claim("policy", 4, "true"), "matchAttribute: celset.dev/a", constraint, 1)
		for _, manifest := range []string{plain, template(plain)} {
			_, err := c.apply(t, manifest, controlplane.ApplyOptions{DryRun: true})
			requireRefusedByPolicy(t, err, want, constraint)
		}
	}
}

// requireNoDerivedAttributes in our domain.
func requireNoDerivedAttributes(t *testing.T, c *cluster) {
	minor.NeedsGate(t, features.DRADerivedAttributes)
	for _, request := range derivingRequests {
		_, err := c.apply(t, deriving("policy", request), controlplane.ApplyOptions{DryRun: true})
		requireRefusedByPolicy(t, err, "derive attributes in another domain", request)
	}
}

func requireRefusedByPolicy(t *testing.T, err error, want, of string) {
	t.Helper()
	switch want {
	case "":
		require.NoError(t, err, of)
		return
	case byItself:
		require.True(t, apierrors.IsInvalid(err), "%s: %v", of, err)
		require.NotContains(t, err.Error(), "ValidatingAdmissionPolicy")
		return
	}
	require.ErrorContains(t, err, "ValidatingAdmissionPolicy 'celset-", of)
	require.ErrorContains(t, err, want, of)
}
