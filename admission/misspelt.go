// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/nearest"
)

// If the driver or domain "celset.dev" is misspelt, the scheduler ignores the definition or reference, so resolving the claim
// reports no mistake. Admission must reject it. Otherwise the class has no constraint, or the claim has a constraint that no
// device satisfies.

// misspeltDriver returns an error if a configuration entry for another driver has the parameters of a celset definition.
func misspeltDriver(configuration resourceapi.DeviceConfiguration, path *field.Path) *field.Error {
	opaque := configuration.Opaque
	if opaque == nil || opaque.Driver == v1alpha1.DriverName {
		return nil
	}
	var is struct{ APIVersion, Kind string }
	if raw, err := opaque.Parameters.MarshalJSON(); err != nil || json.Unmarshal(raw, &is) != nil {
		return nil
	}
	group, _, _ := strings.Cut(is.APIVersion, "/")
	if group != v1alpha1.GroupName && is.Kind != v1alpha1.Kind && is.Kind != v1alpha1.PreferenceKind && is.Kind != v1alpha1.NodeSetConstraintKind {
		return nil
	}
	return field.Invalid(path.Child("opaque", "driver"), opaque.Driver,
		fmt.Sprintf("the parameters are a definition of %s, which other drivers ignore; did you mean %q?", v1alpha1.GroupName, v1alpha1.DriverName))
}

func (j *judgement) misspelt() {
	for i := range j.carrier.Spec.Devices.Config {
		if err := misspeltDriver(j.carrier.Spec.Devices.Config[i].DeviceConfiguration, j.devices.Child("config").Index(i)); err != nil {
			j.Errors = append(j.Errors, err)
		}
	}
	for i := range j.carrier.Spec.Devices.Constraints {
		attribute := j.carrier.Spec.Devices.Constraints[i].MatchAttribute
		if attribute == nil {
			continue
		}
		domain, name, found := strings.Cut(string(*attribute), "/")
		if found && nearest.Name(domain, slices.Values([]string{v1alpha1.AttributeDomain})) != "" {
			j.Errors = append(j.Errors, field.Invalid(j.devices.Child("constraints").Index(i).Child("matchAttribute"), *attribute,
				fmt.Sprintf("CEL device constraints are in the domain %s; did you mean %q?", v1alpha1.AttributeDomain, v1alpha1.AttributeDomain+"/"+name)))
		}
	}
}
