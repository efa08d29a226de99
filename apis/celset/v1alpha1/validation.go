// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/compat"
)

// ValidateDefinition checks the values of a decoded definition. path is the path of the definition, usually ….opaque.parameters.
// ValidateDefinition does not compile the expression.
func ValidateDefinition(def *CELDeviceConstraint, path *field.Path) field.ErrorList {
	errs := validateName(def.Name, path.Child("name"))
	errs = append(errs, validateExpression(def.Expression, path.Child("expression"))...)
	switch def.Enforcement {
	case "", EnforcementOnReference, EnforcementAlways:
	default:
		errs = append(errs, field.NotSupported(path.Child("enforcement"), def.Enforcement, []Enforcement{EnforcementOnReference, EnforcementAlways}))
	}
	switch def.FailurePolicy {
	case "", FailurePolicyFail, FailurePolicyNodeDoesNotFit:
	default:
		errs = append(errs, field.NotSupported(path.Child("failurePolicy"), def.FailurePolicy, []FailurePolicy{FailurePolicyFail, FailurePolicyNodeDoesNotFit}))
	}
	return append(errs, validateVariables(def.Variables, "device", path.Child("variables"))...)
}

func validateVariables(variables []Variable, member string, path *field.Path) field.ErrorList {
	if len(variables) > MaxVariables {
		return field.ErrorList{field.TooMany(path, len(variables), MaxVariables)}
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i, v := range variables {
		path := path.Index(i)
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(path.Child("name"), "expressions read the variable as d.variables.<name>"))
		case names[v.Name]:
			errs = append(errs, field.Duplicate(path.Child("name"), v.Name))
		default:
			errs = append(errs, validateIdentifier(v.Name, path.Child("name"))...)
		}
		names[v.Name] = true
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(path.Child("expression"), fmt.Sprintf("must be a CEL expression over `%s`", member)))
		} else {
			errs = append(errs, validateExpression(v.Expression, path.Child("expression"))...)
		}
	}
	return errs
}

// validateName checks that the name can follow the slash in a resourceapi.FullyQualifiedName. Claims can't refer to other names.
func validateName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, fmt.Sprintf("claims refer to the constraint with matchAttribute: %s/<name>", AttributeDomain))}
	}
	return validateIdentifier(name, path)
}

func validateIdentifier(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(name) > resourceapi.DeviceMaxIDLength {
		errs = append(errs, field.TooLong(path, name, resourceapi.DeviceMaxIDLength))
	}
	for _, msg := range content.IsCIdentifier(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

func validateExpression(expression string, path *field.Path) field.ErrorList {
	switch {
	case strings.TrimSpace(expression) == "":
		return field.ErrorList{field.Required(path, "must be a CEL expression over `devices` that returns a bool")}
	case len(expression) > MaxExpressionLength:
		return field.ErrorList{field.TooLong(path, expression, MaxExpressionLength)}
	default:
		return nil
	}
}

// validateReferences checks the constraints of a claim that use the domain celset.dev. The API server checks all other
// constraints.
func validateReferences(devices *resourceapi.DeviceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := requestNames(devices)
	for i := range devices.Constraints {
		constraint := &devices.Constraints[i]
		if isReference(constraint) {
			errs = append(errs, validateReference(constraint, names, path.Child("constraints").Index(i))...)
		}
	}
	return errs
}

func validateReference(constraint *resourceapi.DeviceConstraint, names map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name, ok := nameInDomain(constraint.DistinctAttribute); ok {
		detail := fmt.Sprintf("the domain %s is for CEL device constraints: use matchAttribute: %s", AttributeDomain, attribute(name))
		errs = append(errs, field.Forbidden(path.Child("distinctAttribute"), detail))
	} else if constraint.DistinctAttribute != nil {
		detail := "may not be set together with matchAttribute: use a separate constraint"
		errs = append(errs, field.Forbidden(path.Child("distinctAttribute"), detail))
	}
	if name, ok := nameInDomain(constraint.MatchAttribute); ok {
		errs = append(errs, validateName(name, path.Child("matchAttribute"))...)
	}
	for i, request := range constraint.Requests {
		if !names[request] {
			errs = append(errs, unknownRequest(path.Child("requests").Index(i), request))
		}
	}
	return errs
}

func unknownRequest(path *field.Path, name string) *field.Error {
	err := field.NotFound(path, name)
	err.Detail = "must be the name of a request in the claim, or of a request and one of its alternatives separated by '/'"
	return err
}

// requestNames returns all names that a constraint can use for a request or an alternative.
func requestNames(devices *resourceapi.DeviceClaim) map[string]bool {
	names := map[string]bool{}
	for i := range devices.Requests {
		request := &devices.Requests[i]
		names[request.Name] = true
		for j := range request.FirstAvailable {
			names[request.Name+"/"+request.FirstAvailable[j].Name] = true
		}
	}
	return names
}

// validateDerivedAttributes rejects derived attributes in the domain celset.dev. Otherwise a request could give every device a
// derived attribute with the name of a CEL device constraint. A scheduler without support for CEL device constraints would then
// treat the constraint as a plain matchAttribute and allocate any devices, instead of failing closed.
func validateDerivedAttributes(devices *resourceapi.DeviceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(attributes []compat.DerivedAttribute, path *field.Path) {
		for i := range attributes {
			if _, ok := nameInDomain(&attributes[i].Name); ok {
				detail := fmt.Sprintf("the domain %s is for CEL device constraints: choose another domain", AttributeDomain)
				errs = append(errs, field.Forbidden(path.Child("derivedAttributes").Index(i).Child("name"), detail))
			}
		}
	}
	for i := range devices.Requests {
		request, path := &devices.Requests[i], path.Child("requests").Index(i)
		if request.Exactly != nil {
			check(compat.DerivedAttributes(request.Exactly), path.Child("exactly"))
		}
		for j := range request.FirstAvailable {
			check(compat.DerivedAttributesOf(&request.FirstAvailable[j]), path.Child("firstAvailable").Index(j))
		}
	}
	return errs
}
