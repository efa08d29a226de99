// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package celsetwebhook

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/internal/testing/transcript"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/minor"
)

// waitForPolicy waits until the API server enforces all three admission policies.
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

// TestPolicy checks that the admission policies reject mistakes without the webhook.
func TestPolicy(t *testing.T) {
	c := startCluster(t)
	_, err := c.apply(t, finalized(class("earlier", parameters("{kind: Ring}"))), controlplane.ApplyOptions{})
	require.NoError(t, err, "nobody checks yet")
	_, err = c.apply(t, readFile(t, manifests+"/policy.yaml"), controlplane.ApplyOptions{})
	require.NoError(t, err)
	waitForPolicy(t, c)

	for _, name := range []string{"definitions", "preferences", "references"} {
		t.Run(name, func(t *testing.T) {
			transcript.Run(t, filepath.Join("testdata", name+".txt"), func(t *testing.T, input string) string { return c.said(t, input) })
		})
	}
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

// said applies dry runs of a claim, a template and a class with the input, and returns the result: "accepted", or the message
// of the policy. The input is a constraint, or lines with the parameters of spec.config entries. If claim and class have
// different results, said returns both.
func (c *cluster) said(t *testing.T, input string) string {
	t.Helper()
	manifests := []string{strings.Replace(claim("policy", 4, "true"), "matchAttribute: celset.dev/a", input, 1)}
	if !strings.Contains(input, "Attribute: ") {
		var entries []string
		for line := range strings.SplitSeq(strings.ReplaceAll(input, "LONG", strings.Repeat("a", 9*1024)), "\n") {
			entries = append(entries, parameters(strings.NewReplacer(
				"CONSTRAINT", "apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint", "PREFERENCE", "apiVersion: celset.dev/v1alpha1, kind: CELDevicePreference").Replace(line)))
		}
		all := strings.Join(entries, ", ")
		manifests = []string{strings.NewReplacer("celset.dev/a}", "celset.dev/z}", definition("a", "true"), definition("z", "true")+", "+all).
			Replace(claim("policy", 4, "true")), class("policy", all)}
	}
	manifests = append(manifests, template(manifests[0]))
	var said []string
	for _, manifest := range manifests {
		_, err := c.apply(t, manifest, controlplane.ApplyOptions{DryRun: true})
		text := "accepted"
		if _, message, by := strings.Cut(fmt.Sprint(err), "denied request: "); by {
			require.ErrorContains(t, err, "ValidatingAdmissionPolicy 'celset-")
			text = "refused: " + message
		} else if err != nil {
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			text = "refused without a policy"
		}
		said = append(said, text)
	}
	require.Equal(t, said[0], said[len(said)-1], "a template is as a claim")
	if said[0] == said[1] {
		return said[0]
	}
	return "claim: " + said[0] + "\nclass: " + said[1]
}

// requireNoDerivedAttributes requires that the policy rejects derived attributes in celset's domain.
func requireNoDerivedAttributes(t *testing.T, c *cluster) {
	minor.NeedsGate(t, features.DRADerivedAttributes)
	for _, request := range derivingRequests {
		_, err := c.apply(t, deriving("policy", request), controlplane.ApplyOptions{DryRun: true})
		require.ErrorContains(t, err, "ValidatingAdmissionPolicy 'celset-", request)
		require.ErrorContains(t, err, "derive attributes in another domain", request)
	}
}
