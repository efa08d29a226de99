// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// OriginUnavailableClass is the origin of errors about a device class that does not exist or could not be read. Only errors
// with this origin may disappear without a change to the claim.
const OriginUnavailableClass = "unavailable device class"

// Error lists the mistakes in the constraints or preferences of one object.
type Error struct {
	// Object is the object that contains the mistakes. It is empty if the caller passed only parameters.
	Object ObjectReference
	// Errors has an entry for each mistake. It is never empty.
	//
	// If a definition is looked up in a device class, the type of the entry distinguishes permanent mistakes from temporary
	// failures. NotFound means that the class does not exist, InternalError that it could not be read, and Invalid that its
	// definitions are invalid. NotFound and InternalError have [OriginUnavailableClass].
	Errors field.ErrorList
	// Causes are the errors behind entries of Errors: errors of the [ClassGetter], and the [*Error] about a device class.
	Causes []error
}

// Error returns all mistakes on one line that starts with the object.
func (e *Error) Error() string {
	texts := make([]string, 0, len(e.Errors))
	for _, err := range e.Errors {
		texts = append(texts, err.Error())
	}
	text := strings.Join(texts, "; ")
	if e.Object == (ObjectReference{}) {
		return text
	}
	return e.Object.String() + ": " + text
}

// Unwrap makes the field errors and the causes available to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, len(e.Errors)+len(e.Causes))
	for _, err := range e.Errors {
		errs = append(errs, err)
	}
	return append(errs, e.Causes...)
}

// errorAbout returns an [*Error] with the mistakes, or nil if there are no mistakes.
func errorAbout(object ObjectReference, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return &Error{Object: object, Errors: errs}
}
