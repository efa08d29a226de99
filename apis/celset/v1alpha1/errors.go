// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ObjectReference names an API object in messages.
type ObjectReference struct {
	// Kind is the object's kind, such as ResourceClaim.
	Kind string
	// Namespace is empty for an object of cluster scope.
	Namespace string
	// Name is the object's name. Of an object whose name is yet to be
	// generated it is the prefix followed by "*".
	Name string
}

// String returns "Kind namespace/name", without the parts that are empty.
func (r ObjectReference) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return strings.TrimSpace(r.Kind + " " + name)
}

func referenceTo(kind string, object metav1.Object) ObjectReference {
	name := object.GetName()
	if name == "" && object.GetGenerateName() != "" {
		name = object.GetGenerateName() + "*"
	}
	return ObjectReference{Kind: kind, Namespace: object.GetNamespace(), Name: name}
}

const classKind = "DeviceClass"

func classReference(class *resourceapi.DeviceClass) ObjectReference {
	return referenceTo(classKind, class)
}

// OriginUnavailableClass is the origin of errors about a device class that does not
// exist or could not be read: they may pass without the claim being changed. No other
// error has it.
const OriginUnavailableClass = "unavailable device class"

// Error says what is wrong with the constraints of one object.
type Error struct {
	// Object is the object whose fields Errors are about. It is empty if only
	// parameters were at hand.
	Object ObjectReference
	// Errors has one entry for each mistake, at least one.
	//
	// The type of an entry about a device class that is needed to find a
	// definition tells lasting mistakes from passing trouble: NotFound if the
	// class does not exist, InternalError if it could not be read, Invalid if
	// its definitions are at fault. The first two have [OriginUnavailableClass].
	Errors field.ErrorList
	// Causes are the errors behind entries of Errors: what the [ClassGetter]
	// returned, and the [*Error] about a device class.
	Causes []error
}

// Error returns all mistakes in one line that starts with the object.
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

// Unwrap makes the field errors and the causes available to errors.Is and
// errors.As.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, len(e.Errors)+len(e.Causes))
	for _, err := range e.Errors {
		errs = append(errs, err)
	}
	return append(errs, e.Causes...)
}

// errorAbout returns nil if there are no mistakes.
func errorAbout(object ObjectReference, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return &Error{Object: object, Errors: errs}
}
