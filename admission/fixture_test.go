// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/shorthand"
)

func newChecker(t testing.TB, options Options) *Checker {
	t.Helper()
	checker, err := NewChecker(options)
	require.NoError(t, err)
	return checker
}

// claimOf returns the claim that [shorthand.Claim] makes.
func claimOf(t testing.TB, devices string) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := shorthand.Claim(devices)
	require.NoError(t, err)
	return claim
}

func templateOf(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaimTemplate {
	return &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "four"},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: claim.Spec},
	}
}

func classOf(t testing.TB, name, spec string) *resourceapi.DeviceClass {
	t.Helper()
	class, err := shorthand.Class(name, spec)
	require.NoError(t, err)
	return class
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

// List implements structured.DeviceClassLister for the allocator.
func (f fakeClasses) List() ([]*resourceapi.DeviceClass, error) {
	var result []*resourceapi.DeviceClass
	for _, class := range f {
		if class != nil {
			result = append(result, class)
		}
	}
	return result, nil
}

func texts[T error](errs []T) []string {
	result := []string{}
	for _, err := range errs {
		result = append(result, err.Error())
	}
	return result
}

// judged returns the verdict and panics if there is an error.
func judged(verdict Verdict, err error) Verdict {
	if err != nil {
		panic(err)
	}
	return verdict
}
