// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/internal/testing/shorthand"
)

// claimOf is [shorthand.Claim].
func claimOf(t *testing.T, devices string) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := shorthand.Claim(devices)
	require.NoError(t, err)
	return claim
}

// definition makes a configuration entry that defines a constraint.
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

// fakeClasses holds classes and errors by name and records who was asked for.
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
