// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/nearest"
)

// ClassGetter provides device classes. The device class lister of the scheduler framework implements it.
type ClassGetter interface {
	// Get returns the class with the name. The caller does not modify the class. If the class does not exist, the error satisfies
	// apierrors.IsNotFound.
	Get(className string) (*resourceapi.DeviceClass, error)
}

// Constraint is a definition that applies to a claim, through a reference or as a default.
type Constraint struct {
	// Index is the index of the reference in spec.devices.constraints, or [NoReference] for a default.
	Index int
	// Requests names the covered requests as the claim does: "request" or "request/alternative". Empty means all requests. It is the
	// slice of the claim and must not be modified.
	Requests []string
	// Name is the name of the definition.
	Name string
	// Expression is the CEL expression as its author wrote it. Variables are the variables that it may read.
	Expression string
	Variables  []Variable
	// FailurePolicy specifies how a failed evaluation is handled. It is never empty.
	FailurePolicy FailurePolicy
	// Default is true if the constraint applies without a reference, because the class of the request requires it. Requests
	// then names only the requests to whose devices it applies together: one request, or the requests of one container
	// ([WithContainers]).
	Default bool
	// Source is the location of the definition. If several classes have the same definition, Source is the first of them in the
	// order of the requests.
	Source Source
}

// NoReference is the Index of a constraint without a reference in the claim.
const NoReference = -1

// Label returns the name of the constraint in messages. For a default the label includes the location, because the claim does not
// show where the default is defined.
func (c *Constraint) Label() string {
	if !c.Default {
		return c.Name
	}
	return fmt.Sprintf("%s of %s (default)", c.Name, c.Source)
}

// Resolve finds the definition of each reference in the claim, and the defaults of the classes that the claim uses
// ([ClassDefaults]). The result has the order of spec.devices.constraints, followed by the defaults in the order of the requests.
//
// Resolve looks up a name in the claim's own configuration first. If it is not there, Resolve looks it up in the configuration of
// the device classes of the covered requests. The requests of a configuration entry are ignored.
//
// All definitions in the claim must be valid, even without a reference. The definitions of a class must be valid if a lookup
// reads the class. The defaults of a class must always be valid. Every error is an [*Error] about the claim.
func Resolve(claim *resourceapi.ResourceClaim, classes ClassGetter) ([]Constraint, error) {
	return ClaimCarrier(claim).Resolve(classes)
}

// Resolve is [Resolve] for any carrier.
func (c Carrier) Resolve(classes ClassGetter) ([]Constraint, error) {
	own, err := c.Definitions()
	if err != nil {
		return nil, err
	}
	r := resolver{Carrier: c, own: own, getter: classes, classes: map[string]classDefinitions{}, defaultsByClass: map[string][]Definition{}}
	var constraints []Constraint
	for _, reference := range References(c.Spec) {
		if def := r.lookUp(reference); def != nil {
			constraints = append(constraints, Constraint{
				Index:         reference.Index,
				Requests:      reference.Requests,
				Name:          def.Name,
				Expression:    def.Expression,
				Variables:     def.Variables,
				FailurePolicy: def.FailurePolicy,
				Source:        def.Source,
			})
		}
	}
	constraints = append(constraints, r.defaults(constraints)...)
	if len(r.errs) > 0 {
		return nil, &Error{Object: c.Object, Errors: r.errs, Causes: r.causes}
	}
	return constraints, nil
}

// resolver holds the state of one call of Resolve.
type resolver struct {
	Carrier
	own    []Definition
	getter ClassGetter
	// classes has an entry for each class read so far.
	classes map[string]classDefinitions
	// defaultsByClass has the defaults of each class, if Resolve has read only the defaults of the class.
	defaultsByClass map[string][]Definition

	// errs and causes become the fields Errors and Causes of the returned Error.
	errs   field.ErrorList
	causes []error
}

// classDefinitions is the result of reading a class: all its definitions, or an error.
type classDefinitions struct {
	definitions []Definition
	err         error
}

// lookUp returns the definition that a reference names. If it finds none, it records an error and returns nil.
func (r *resolver) lookUp(reference Reference) *Definition {
	if def := find(r.own, reference.Name); def != nil {
		return def
	}
	path := r.Path.Child("devices", "constraints").Index(reference.Index).Child("matchAttribute")
	classNames := coveredClasses(&r.Spec.Devices, reference.Requests)
	found, ok := r.lookUpInClasses(reference.Name, classNames, path)
	switch {
	case !ok:
		return nil
	case len(found) == 0:
		r.errs = append(r.errs, r.notFound(reference.Name, classNames, path))
		return nil
	}
	if err := conflict(found, path); err != nil {
		r.errs = append(r.errs, err)
		return nil
	}
	return found[0]
}

// lookUpInClasses returns the definitions with the name, at most one per class. ok is false if a class could not be read.
func (r *resolver) lookUpInClasses(name string, classNames []string, path *field.Path) (found []*Definition, ok bool) {
	ok = true
	for _, className := range classNames {
		definitions, err := r.consult(className)
		if err != nil {
			ok = false
			r.errs = append(r.errs, classError(className, name, err, path))
			r.causes = append(r.causes, err)
			continue
		}
		if def := find(definitions, name); def != nil {
			found = append(found, def)
		}
	}
	return found, ok
}

// consult returns the definitions of a class. It reads and decodes each class only once per call of Resolve.
func (r *resolver) consult(className string) ([]Definition, error) {
	if result, done := r.classes[className]; done {
		return result.definitions, result.err
	}
	var result classDefinitions
	class, err := r.getter.Get(className)
	if err != nil {
		result.err = err
	} else {
		result.definitions, result.err = ClassDefinitions(class)
	}
	r.classes[className] = result
	return result.definitions, result.err
}

func find(definitions []Definition, name string) *Definition {
	for i := range definitions {
		if definitions[i].Name == name {
			return &definitions[i]
		}
	}
	return nil
}

// notFound returns the error for a name without a definition. The error lists the searched objects.
func (r *resolver) notFound(name string, classNames []string, path *field.Path) *field.Error {
	places := []string{fmt.Sprintf("%s of the %s", r.Path.Child("devices", "config"), r.Object.Kind)}
	for _, className := range classNames {
		places = append(places, "spec.config of DeviceClass "+className)
	}
	err := field.NotFound(path, attribute(name))
	err.Detail = fmt.Sprintf("no %s of that name in %s: define it in one of them", Kind, strings.Join(places, ", ")) +
		nearest.DidYouMean(AttributeDomain+"/", name, r.names(classNames))
	return err
}

// names yields the names of the constraints that the claim defines, and then the names of the constraints that the searched
// classes define.
func (r *resolver) names(classNames []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		all := slices.Clone(r.own)
		for _, className := range classNames {
			all = append(all, r.classes[className].definitions...)
		}
		for i := range all {
			if !yield(all[i].Name) {
				return
			}
		}
	}
}

// conflict returns an error unless the definitions, one per class, are all equal.
func conflict(found []*Definition, path *field.Path) *field.Error {
	for _, other := range found[1:] {
		if other.Expression != found[0].Expression || other.FailurePolicy != found[0].FailurePolicy || !slices.Equal(other.Variables, found[0].Variables) {
			detail := fmt.Sprintf("%s and %s define the constraint differently: make them equal, or define it in the claim",
				found[0].Source, other.Source)
			return field.Invalid(path, attribute(found[0].Name), detail)
		}
	}
	return nil
}

// classError returns the error for a name that can't be looked up because its class can't be read or is invalid.
func classError(className, name string, err error, path *field.Path) *field.Error {
	if classErr, ok := errors.AsType[*Error](err); ok {
		return field.Invalid(path, attribute(name), classErr.Error())
	}
	text := fmt.Sprintf("can't look up the constraint in DeviceClass %s: %v", className, err)
	if apierrors.IsNotFound(err) {
		missing := field.NotFound(path, attribute(name))
		missing.Detail = text
		return missing.WithOrigin(OriginUnavailableClass)
	}
	unavailable := field.InternalError(path, err)
	unavailable.Detail = fmt.Sprintf("%s: %s", attribute(name), text)
	return unavailable.WithOrigin(OriginUnavailableClass)
}
