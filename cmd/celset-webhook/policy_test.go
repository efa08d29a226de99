// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
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
		}, 2*time.Minute, 50*time.Millisecond)
	}
}

// TestPolicy: the policy works without the webhook.
func TestPolicy(t *testing.T) {
	c := startCluster(t)
	_, err := c.apply(t, finalized(class("earlier", parameters("{kind: Ring}"))), controlplane.ApplyOptions{})
	require.NoError(t, err, "nobody checks yet")
	_, err = c.apply(t, readFile(t, manifests+"/policy.yaml"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	waitForPolicy(t, c)

	t.Run("definitions", func(t *testing.T) { requireDefinitions(t, c) })
	t.Run("defaults", func(t *testing.T) { requireDefaults(t, c) })
	t.Run("preferences", func(t *testing.T) { requirePreferences(t, c) })
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

// requirePreferences: in claims, templates and classes, but for requests, which classes don't know.
func requirePreferences(t *testing.T, c *cluster) {
	preference := func(fields string) string {
		return parameters("{apiVersion: celset.dev/v1alpha1, kind: CELDevicePreference, " + fields + "}")
	}
	const fields, name, either = "a CELDevicePreference has the fields", "the name of a CELDevicePreference", "either an expression of at most 10240 bytes or policy"
	var five []string
	for i := range 5 {
		five = append(five, preference(fmt.Sprintf("name: n%d, policy: KeepWhole", i)))
	}
	for entry, want := range map[string]string{
		preference(`name: a, expression: "1"`):                                                         "",
		preference("name: a, policy: KeepWhole"):                                                       "",
		preference(`name: a, expression: "1", variables: [{name: b, expression: "1"}]`):                "",
		preference(`name: a, expression: "1"`) + ", " + definition("a", "true"):                        "",
		strings.Join(five[:4], ", "):                                                                   "",
		strings.Join(five, ", "):                                                                       "there may be four",
		preference(`name: a, expression: "true"`):                                                      "", // It takes the webhook.
		preference(`name: a, expression: "1", onError: Abort`):                                         fields,
		preference(`name: a, expression: "1", default: true`):                                          fields,
		preference(`name: a, Expression: "1"`):                                                         fields,
		preference(`expression: "1"`):                                                                  name,
		preference(`name: a-b, expression: "1"`):                                                       name,
		preference(`name: 4, expression: "1"`):                                                         name,
		preference(`name: a, expression: "1"`) + ", " + preference(`name: a, policy: KeepWhole`):       "two CELDevicePreferences have the same name",
		preference("name: a"):                                                                          either,
		preference("name: a, expression: 1"):                                                           either,
		preference(`name: a, expression: " "`):                                                         either,
		preference("name: a, policy: Spread"):                                                          either,
		preference("name: a, policy: 4"):                                                               either,
		preference(`name: a, policy: KeepWhole, expression: "1"`):                                      either,
		preference(`name: a, policy: KeepWhole, variables: [{name: b, expression: "1"}]`):              either,
		parameters(`{apiVersion: celset.dev/v2, kind: CELDevicePreference, name: a, expression: "1"}`): "must have apiVersion",
		preference(`name: a, expression: "1", requests: [r]`):                                          "can't name requests",
		preference(`name: a, expression: "1", requests: [s]`):                                          "names a request that the claim does not have",
	} {
		plain := claim("policy", 4, "true")
		plain = strings.Replace(plain, definition("a", "true"), definition("z", "true")+", "+entry, 1)
		plain = strings.Replace(plain, "celset.dev/a}", "celset.dev/z}", 1)
		ofClaims, ofClasses := want, want
		switch {
		case strings.Contains(entry, "[r]"):
			ofClaims = ""
		case strings.Contains(entry, "[s]"):
			ofClasses = "can't name requests"
		}
		for _, manifest := range []string{plain, template(plain)} {
			_, err := c.apply(t, manifest, controlplane.ApplyOptions{DryRun: true})
			requireRefusedByPolicy(t, err, ofClaims, entry)
		}
		_, err := c.apply(t, class("policy", entry), controlplane.ApplyOptions{DryRun: true})
		requireRefusedByPolicy(t, err, ofClasses, entry)
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
