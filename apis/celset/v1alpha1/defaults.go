// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// A default is a constraint of a class that applies without a reference. Defaults are needed for extended resources: a
// container that asks for four devices of an extended resource has no claim to put a reference in. Claims can't opt out,
// because the provider of the devices decides how the devices of a set must be connected. A class without defaults offers
// devices in any combination.

// ClassDefaults decodes and validates the definitions of a device class that apply without a reference ([EnforcementAlways]). The
// error, an [*Error], covers only these definitions. Other mistakes in the class affect only claims that refer to it.
func ClassDefaults(class *resourceapi.DeviceClass) ([]Definition, error) {
	configurations := classConfigurations(class)
	for i := range configurations {
		if !isDefault(configurations[i]) {
			configurations[i] = resourceapi.DeviceConfiguration{}
		}
	}
	object := classReference(class)
	definitions, errs := decodeAll(configurations, object, field.NewPath("spec", "config"))
	return definitions, errorAbout(object, errs)
}

// HasDefaults reports whether a definition of the class may apply without a reference. A malformed definition counts, too. Its
// requirement is unknown, so no request of the class can be allocated until the definition is corrected.
func HasDefaults(class *resourceapi.DeviceClass) bool {
	for i := range class.Spec.Config {
		if isDefault(class.Spec.Config[i].DeviceConfiguration) {
			return true
		}
	}
	return false
}

func isDefault(configuration resourceapi.DeviceConfiguration) bool {
	if !isDefinition(configuration) {
		return false
	}
	raw, err := configuration.Opaque.Parameters.MarshalJSON()
	if err != nil || !mayHave(raw, "enforcement") && !mayHave(raw, "default") || !isConstraint(configuration) {
		return false
	}
	// Decode into a map, because map keys are case-sensitive. Decoding into a struct would ignore the case of field names.
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	var enforcement Enforcement
	if raw, ok := fields["enforcement"]; ok && json.Unmarshal(raw, &enforcement) != nil {
		return true
	}
	// A definition with the former field "default" is malformed. It counts as a default, so that it is not ignored.
	former := strings.TrimSpace(string(fields["default"]))
	return enforcement != "" && enforcement != EnforcementOnReference || former != "" && former != "null" && former != "false"
}

// HasConstraints reports whether a CEL constraint applies to the claim, through a reference or through a default of a class.
// hasDefaults reports whether the named class has defaults, even if their definitions are malformed.
func HasConstraints(claim *resourceapi.ResourceClaim, hasDefaults func(className string) bool) bool {
	if HasReference(claim) {
		return true
	}
	for _, r := range setsOf(&claim.Spec.Devices, ContainersOf(claim)) {
		if r.isOfSeveral && hasDefaults(r.className) {
			return true
		}
	}
	return false
}

// requestOfClass is a request, or one alternative of a request, with its device class.
type requestOfClass struct {
	// name is the name of the request. fullName is "request/alternative", or name for a request without alternatives.
	name, fullName string
	// names are the full names of the requests to whose devices defaults apply together. Only setsOf puts more than one name in
	// it.
	names     []string
	className string
	path      *field.Path
	// isOfSeveral is true if the request may get two devices or more, because only then defaults apply. It is false for a
	// request with admin access, because such a request reserves no devices.
	isOfSeveral bool
}

func requestsOf(devices *resourceapi.DeviceClaim) []requestOfClass {
	result := make([]requestOfClass, 0, len(devices.Requests))
	for i := range devices.Requests {
		request, path := &devices.Requests[i], field.NewPath("devices", "requests").Index(i)
		if exactly := request.Exactly; exactly != nil {
			result = append(result, requestOfClass{
				name: request.Name, fullName: request.Name, names: []string{request.Name}, className: exactly.DeviceClassName, path: path.Child("exactly"),
				isOfSeveral: isOfSeveral(exactly.AllocationMode, exactly.Count) && !ptr.Deref(exactly.AdminAccess, false),
			})
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			fullName := request.Name + "/" + alternative.Name
			result = append(result, requestOfClass{
				name: request.Name, fullName: fullName, names: []string{fullName}, className: alternative.DeviceClassName,
				path: path.Child("firstAvailable").Index(j), isOfSeveral: isOfSeveral(alternative.AllocationMode, alternative.Count),
			})
		}
	}
	return result
}

func isOfSeveral(mode resourceapi.DeviceAllocationMode, count int64) bool {
	return mode == resourceapi.DeviceAllocationModeAll || count >= 2
}

// defaults returns the constraints that apply without a reference. It omits a default if a reference already applies the same
// definition to the same devices.
func (r *resolver) defaults(references []Constraint) []Constraint {
	var constraints []Constraint
	for _, request := range setsOf(&r.Spec.Devices, r.containers) {
		if !request.isOfSeveral {
			continue
		}
		for _, def := range r.defaultsOfClass(&request) {
			if !r.hasSame(references, &def, &request) {
				constraints = append(constraints, Constraint{
					Index: NoReference, Requests: request.names, Default: true,
					Name: def.Name, Expression: def.Expression, Variables: def.Variables, FailurePolicy: def.FailurePolicy, Source: def.Source,
				})
			}
		}
	}
	return constraints
}

// defaultsOfClass returns the defaults of the request's class. It returns none if reading the class failed before or the class
// does not exist. A missing class provides no devices, and the search for devices reports that.
func (r *resolver) defaultsOfClass(request *requestOfClass) []Definition {
	if known, consulted := r.classes[request.className]; consulted {
		return slices.DeleteFunc(slices.Clone(known.definitions), func(def Definition) bool { return known.err != nil || def.Enforcement != EnforcementAlways })
	}
	if definitions, known := r.defaultsByClass[request.className]; known {
		return definitions
	}
	definitions, err := r.readDefaults(request.className, r.Path.Child(request.path.Child("deviceClassName").String()))
	if err != nil {
		r.errs = append(r.errs, err)
	}
	r.defaultsByClass[request.className] = definitions
	return definitions
}

func (r *resolver) readDefaults(className string, path *field.Path) ([]Definition, *field.Error) {
	class, err := r.getter.Get(className)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		r.causes = append(r.causes, err)
		unavailable := field.InternalError(path, err)
		unavailable.Detail = fmt.Sprintf("can't read the default constraints of DeviceClass %s: %v", className, err)
		return nil, unavailable.WithOrigin(OriginUnavailableClass)
	case !HasDefaults(class):
		return nil, nil
	}
	definitions, err := ClassDefaults(class)
	if err != nil {
		r.causes = append(r.causes, err)
		return nil, field.Invalid(path, className, err.Error())
	}
	return definitions, nil
}

// hasSame reports whether a reference applies the class's definition to this request alone. A definition in the claim does not
// count, even if it has the same name.
func (r *resolver) hasSame(references []Constraint, def *Definition, request *requestOfClass) bool {
	for i := range references {
		c := &references[i]
		if c.Name == def.Name && c.Source.Object != r.Object && coversAlone(&r.Spec.Devices, c.Requests, request) {
			return true
		}
	}
	return false
}

// coversAlone reports whether requests names only the given request or its alternatives. Alternatives of one request may be
// listed together, because only one of them is allocated.
func coversAlone(devices *resourceapi.DeviceClaim, requests []string, request *requestOfClass) bool {
	if len(requests) == 0 {
		return len(devices.Requests) == 1
	}
	if len(request.names) > 1 {
		return false
	}
	covered := false
	for _, name := range requests {
		switch {
		case name == request.name, name == request.fullName:
			covered = true
		case !strings.HasPrefix(name, request.name+"/"):
			return false
		}
	}
	return covered
}
