// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/admission"
	"github.com/celset/celset/internal/testing/shorthand"
)

func newChecker(t testing.TB) *admission.Checker {
	t.Helper()
	checker, err := admission.NewChecker(admission.Options{})
	require.NoError(t, err)
	return checker
}

func claimOf(t require.TestingT, devices string) *resourceapi.ResourceClaim {
	claim, err := shorthand.Claim(devices)
	require.NoError(t, err)
	return claim
}

func classOf(t require.TestingT, name, spec string) *resourceapi.DeviceClass {
	class, err := shorthand.Class(name, spec)
	require.NoError(t, err)
	return class
}

func templateOf(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaimTemplate {
	return &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "four"},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: claim.Spec},
	}
}

func podOf(scheduler string, entries ...corev1.PodResourceClaim) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: scheduler, ResourceClaims: entries}}
}

// defined returns a configuration entry that defines a constraint, in shorthand.
func defined(name, expression string) string {
	return fmt.Sprintf("{constraint: {name: %q, expression: %q}}", name, expression)
}

// preferred returns a configuration entry that defines a preference, in shorthand.
func preferred(name, expression string) string {
	return fmt.Sprintf("{preference: {name: %q, type: Expression, expression: %q}}", name, expression)
}

// asking returns the specification of a claim with a constraint, which asks for devices of the class mla.
func asking(count int, config ...string) string {
	return fmt.Sprintf("requests: [{name: r, exactly: {deviceClassName: mla, allocationMode: ExactCount, count: %d}}]\n"+
		"constraints: [{requests: [r], matchAttribute: celset.dev/a}]\nconfig: [%s]", count, strings.Join(config, ", "))
}

// fakeClasses maps names to classes. Reading a class that is nil fails.
type fakeClasses map[string]*resourceapi.DeviceClass

func (f fakeClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	class, ok := f[name]
	switch {
	case !ok:
		return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
	case class == nil:
		return nil, apierrors.NewServiceUnavailable("no answer")
	default:
		return class, nil
	}
}

// damaged replaces, removes or repeats a range of a text.
func damaged(t *rapid.T, text string) string {
	from := rapid.IntRange(0, len(text)).Draw(t, "from")
	to := min(len(text), from+rapid.IntRange(0, 12).Draw(t, "length"))
	with := rapid.SampledFrom([]string{"", "", text[from:to] + text[from:to], "(", "'", ".", "[0]", "\"", "{", "\\", "\xc3"}).Draw(t, "with")
	return text[:from] + with + text[to:]
}
