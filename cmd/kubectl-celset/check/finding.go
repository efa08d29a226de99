// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/admission"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/nearest"
)

// Finding is a mistake, or a valid setting that is probably not intended.
type Finding struct {
	// Field is the path of the field in the object. It is empty if the path is only in the message.
	Field string `json:"field,omitempty"`
	// Line and Column are a position in the expression, counted from 1, or 0 if the finding has no position.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Message describes the finding, including the path of the field. If it quotes the position in the expression, it has
	// several lines.
	Message string `json:"message"`
}

func (o *Object) fail(format string, args ...any) {
	o.Errors = append(o.Errors, Finding{Message: fmt.Sprintf(format, args...)})
}

func (o *Object) warn(format string, args ...any) {
	o.Warnings = append(o.Warnings, Finding{Message: fmt.Sprintf(format, args...)})
}

// judged adds the errors and warnings that admission finds in the object.
func (o *Object) judged(verdict admission.Verdict) {
	for _, err := range verdict.Errors {
		line, column := verdict.Position(err)
		o.Errors = append(o.Errors, Finding{Field: err.Field, Line: line, Column: column, Message: err.Error()})
	}
	for _, text := range verdict.Warnings {
		o.Warnings = append(o.Warnings, Finding{Message: text})
	}
}

// unknownClasses reports classes that requests name but the input doesn't contain. A missing class is an error if all classes
// were read, or if a class with a similar name exists. If the claim has no constraints and concerned isn't set, a missing class
// is an error only with a similar name. concerned is set if admission has findings on the claim other than on device selectors.
func (c *checker) unknownClasses(object *Object, carrier v1alpha1.Carrier, concerned bool) {
	var names []string
	for _, class := range c.state.Objects.Classes {
		names = append(names, class.Name)
	}
	concerned = concerned || len(v1alpha1.References(carrier.Spec)) > 0
	look := func(path *field.Path, name string) {
		near := nearest.DidYouMean("", name, slices.Values(names))
		if slices.Contains(names, name) || near == "" && !(concerned && c.AllClasses) {
			return
		}
		err := field.NotFound(path.Child("deviceClassName"), name)
		err.Detail = "no DeviceClass has this name: create the class, or correct the name" + near
		object.Errors = append(object.Errors, Finding{Field: err.Field, Message: err.Error()})
	}
	for i := range carrier.Spec.Devices.Requests {
		request, path := &carrier.Spec.Devices.Requests[i], carrier.Path.Child("devices", "requests").Index(i)
		if request.Exactly != nil {
			look(path.Child("exactly"), request.Exactly.DeviceClassName)
		}
		for k := range request.FirstAvailable {
			look(path.Child("firstAvailable").Index(k), request.FirstAvailable[k].DeviceClassName)
		}
	}
}
