// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Source is the location of a definition: an object and a field.
type Source struct {
	// Object is the claim, claim template, device class or PodGroup that contains the definition.
	Object ObjectReference
	// Field is the path of the configuration entry in Object, such as spec.devices.config[0]. The parameters are in the entry,
	// at opaque.parameters.
	Field string
	// Index is the position in the list of configuration entries. It is [NoReference] for the annotation of a PodGroup.
	Index int
}

// String returns the object and the field, such as "ResourceClaim ns/name spec.devices.config[0]".
func (s Source) String() string {
	return s.Object.String() + " " + s.Field
}

// Path returns the path of the parameters, which contain the fields of the definition.
func (s Source) Path() *field.Path {
	path := field.NewPath(s.Field)
	if s.Index != NoReference {
		path = path.Child("opaque", "parameters")
	}
	return path
}

// Definition is a valid CELDeviceConstraint and its location.
type Definition struct {
	Name       string
	Expression string
	Variables  []Variable
	// Enforcement is never empty.
	Enforcement Enforcement
	// FailurePolicy is never empty.
	FailurePolicy FailurePolicy
	Source        Source
}

// HasDefinition reports whether the claim itself contains a constraint's definition. It checks only the kind, so the definition
// may be malformed.
func HasDefinition(claim *resourceapi.ResourceClaim) bool {
	for i := range claim.Spec.Devices.Config {
		if isConstraint(claim.Spec.Devices.Config[i].DeviceConfiguration) {
			return true
		}
	}
	return false
}

// Unreferenced returns the names of the valid definitions in a claim that no constraint of the claim refers to, in the order of
// the configuration. Such definitions are allowed but have no effect, so the author probably forgot a reference.
func Unreferenced(spec *resourceapi.ResourceClaimSpec) []string {
	referenced := map[string]bool{}
	for _, reference := range References(spec) {
		referenced[reference.Name] = true
	}
	definitions, _ := decodeAll(claimConfigurations(&spec.Devices), ObjectReference{}, field.NewPath("config"))
	var names []string
	for _, def := range definitions {
		if !referenced[def.Name] {
			names = append(names, def.Name)
		}
	}
	return names
}

// ClassDefinitions decodes and validates the definitions of a device class. If some are invalid, it returns the valid ones
// together with an [*Error].
func ClassDefinitions(class *resourceapi.DeviceClass) ([]Definition, error) {
	object := classReference(class)
	definitions, errs := decodeAll(classConfigurations(class), object, field.NewPath("spec", "config"))
	return definitions, errorAbout(object, errs)
}

func classConfigurations(class *resourceapi.DeviceClass) []resourceapi.DeviceConfiguration {
	configurations := make([]resourceapi.DeviceConfiguration, 0, len(class.Spec.Config))
	for i := range class.Spec.Config {
		configurations = append(configurations, class.Spec.Config[i].DeviceConfiguration)
	}
	return configurations
}

func claimConfigurations(devices *resourceapi.DeviceClaim) []resourceapi.DeviceConfiguration {
	configurations := make([]resourceapi.DeviceConfiguration, 0, len(devices.Config))
	for i := range devices.Config {
		configurations = append(configurations, devices.Config[i].DeviceConfiguration)
	}
	return configurations
}

// isConstraint reports whether a configuration entry defines a device constraint. An entry for [DriverName] counts unless it
// has another kind of this package, because it may be a malformed constraint.
func isConstraint(configuration resourceapi.DeviceConfiguration) bool {
	return isDefinition(configuration) && !IsPreference(configuration) && !IsNodeSetConstraint(configuration)
}

// Defines reports whether the claim itself has configuration for the driver [DriverName]. The configuration may be malformed.
func Defines(claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Config, func(c resourceapi.DeviceClaimConfiguration) bool {
		return isDefinition(c.DeviceConfiguration)
	})
}

func isDefinition(configuration resourceapi.DeviceConfiguration) bool {
	return configuration.Opaque != nil && configuration.Opaque.Driver == DriverName
}

// decodeAll decodes and validates each constraint among the configuration entries at path. If several definitions have the same
// name, it returns only the first, with an error for each of the others.
func decodeAll(configurations []resourceapi.DeviceConfiguration, object ObjectReference, path *field.Path) ([]Definition, field.ErrorList) {
	var definitions []Definition
	var errs field.ErrorList
	first := map[string]*field.Path{}
	for i, configuration := range configurations {
		if !isConstraint(configuration) {
			continue
		}
		entry := path.Index(i)
		parameters := entry.Child("opaque", "parameters")
		def, entryErrs := decodeOne(configuration.Opaque, parameters)
		if def != nil && def.Enforcement == EnforcementAlways && object.Kind != classKind {
			entryErrs = append(entryErrs, field.Forbidden(parameters.Child("enforcement"), "only a DeviceClass can define a default: remove this field, and refer to the constraint with matchAttribute"))
		}
		if len(entryErrs) > 0 {
			errs = append(errs, entryErrs...)
			continue
		}
		if other, exists := first[def.Name]; exists {
			errs = append(errs, duplicateName(parameters, def.Name, other))
			continue
		}
		first[def.Name] = entry
		source := Source{Object: object, Field: entry.String(), Index: i}
		definitions = append(definitions, Definition{
			Name: def.Name, Expression: def.Expression, Variables: def.Variables, Enforcement: cmp.Or(def.Enforcement, EnforcementOnReference),
			FailurePolicy: cmp.Or(def.FailurePolicy, FailurePolicyFail), Source: source,
		})
	}
	return definitions, errs
}

func decodeOne(opaque *resourceapi.OpaqueDeviceConfiguration, path *field.Path) (*CELDeviceConstraint, field.ErrorList) {
	if opaque.Parameters.Raw == nil && opaque.Parameters.Object == nil {
		return nil, field.ErrorList{field.Required(path, "must be a "+Kind+" or "+PreferenceKind+" or "+NodeSetConstraintKind)}
	}
	// Use MarshalJSON instead of the field Raw, because Raw is empty for objects that were made in Go or decoded from CBOR.
	raw, err := opaque.Parameters.MarshalJSON()
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	def, errs := decode(raw, path)
	if len(errs) > 0 {
		return nil, errs
	}
	return def, ValidateDefinition(def, path)
}
