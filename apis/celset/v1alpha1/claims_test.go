// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/internal/testing/shorthand"
	"github.com/celset/celset/internal/testing/transcript"
)

// TestClaims compares the resolved constraints and preferences of claims, and the errors about classes, with a transcript.
func TestClaims(t *testing.T) {
	var requests string
	list := classes()
	transcript.Run(t, "testdata/claims.txt", func(t *testing.T, input string) string {
		directive, rest, _ := strings.Cut(input, " ")
		switch directive {
		case "requests":
			requests, list = rest, classes()
			return ""
		case "class":
			name, spec, _ := strings.Cut(rest, " ")
			delete(list.errs, name)
			switch spec {
			case "missing":
				list.errs[name] = apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
				return ""
			case "unavailable":
				list.errs[name] = context.DeadlineExceeded
				return ""
			}
			class, err := shorthand.Class(name, spec)
			require.NoError(t, err)
			list.classes[name] = class
			_, err = ClassDefinitions(class)
			_, preferenceErr := ClassPreferences(class)
			return strings.Join(append(mistakes(t, err), mistakes(t, preferenceErr)...), "\n")
		}
		claim, err := shorthand.Claim("requests: "+requests, input)
		require.NoError(t, err)
		return strings.Join(resolution(t, claim, list), "\n")
	})
}

// resolution returns the constraints, preferences and errors of a claim, one per line.
func resolution(t *testing.T, claim *resourceapi.ResourceClaim, list *fakeClasses) (lines []string) {
	t.Helper()
	before := claim.DeepCopy()
	note := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	list.asked = nil
	resolved, err := Resolve(claim, list)
	read := list.asked
	for _, c := range resolved {
		text := fmt.Sprintf("constraint %d of [%s]: %s = %s", c.Index, strings.Join(c.Requests, " "), c.Name, c.Expression)
		if c.FailurePolicy != FailurePolicyFail {
			text += ", " + string(c.FailurePolicy)
		}
		require.Equal(t, c.Default, c.Index == NoReference)
		note("%s, %s", text, c.Source)
	}
	wrong := mistakes(t, err)
	lines = append(lines, wrong...)
	list.asked = nil
	preferences, err := ResolvePreferences(claim, list)
	for _, p := range preferences {
		note("preference of [%s]: %s = %s%s %v, %s", strings.Join(p.Requests, " "), p.Name, p.Expression, p.Policy, p.Variables, p.Source)
	}
	if again := mistakes(t, err); !cmp.Equal(again, wrong) {
		lines = append(lines, again...)
	}
	hasDefaults := HasConstraints(claim, func(name string) bool { return list.classes[name] != nil && HasDefaults(list.classes[name]) })
	require.True(t, hasDefaults || len(resolved) == 0)
	has := []string{fmt.Sprintf("asks for %v and %v", read, list.asked)}
	for _, what := range []struct {
		name string
		is   bool
	}{
		{"references", HasReference(claim)},
		{"definitions", HasDefinition(claim)},
		{"preferences", HasPreference(claim, func(string) bool { return false })},
		{"constraints", hasDefaults},
	} {
		if what.is {
			has = append(has, what.name)
		}
	}
	if names := Unreferenced(&claim.Spec); len(names) > 0 {
		has = append(has, "unreferenced "+strings.Join(names, " "))
	}
	note("%s", strings.Join(has, ", "))
	require.Empty(t, cmp.Diff(before, claim), "claim was modified")
	return lines
}

func mistakes(t *testing.T, err error) (lines []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	failure, ok := errors.AsType[*Error](err)
	require.True(t, ok, "%v", err)
	for _, one := range failure.Errors {
		lines = append(lines, failure.Object.String()+": "+one.Error())
	}
	return lines
}

// claimOf returns the claim that [shorthand.Claim] makes.
func claimOf(t *testing.T, devices string) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := shorthand.Claim(devices)
	require.NoError(t, err)
	return claim
}

// definition returns a configuration entry that defines a constraint.
func definition(t *testing.T, name, expression string) resourceapi.DeviceConfiguration {
	t.Helper()
	raw, err := json.Marshal(CELDeviceConstraint{
		TypeMeta:   metav1.TypeMeta{APIVersion: "celset.dev/v1alpha1", Kind: "CELDeviceConstraint"},
		Name:       name,
		Expression: expression,
	})
	require.NoError(t, err)
	return parameters(DriverName, string(raw))
}

func parameters(driver, raw string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver:     driver,
		Parameters: runtime.RawExtension{Raw: []byte(raw)},
	}}
}

func classOf(name string, configurations ...resourceapi.DeviceConfiguration) *resourceapi.DeviceClass {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, configuration := range configurations {
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: configuration})
	}
	return class
}

// fakeClasses has device classes and errors by name, and records the names that Get was called with.
type fakeClasses struct {
	classes map[string]*resourceapi.DeviceClass
	errs    map[string]error
	asked   []string
}

func classes(list ...*resourceapi.DeviceClass) *fakeClasses {
	f := &fakeClasses{classes: map[string]*resourceapi.DeviceClass{}, errs: map[string]error{}}
	for _, class := range list {
		f.classes[class.Name] = class
	}
	return f
}

func (f *fakeClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	f.asked = append(f.asked, name)
	if err := f.errs[name]; err != nil {
		return nil, err
	}
	class, ok := f.classes[name]
	if !ok {
		return nil, fmt.Errorf("the test has no class %q", name)
	}
	return class, nil
}
