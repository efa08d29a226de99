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
	// Name is the object's name. If the name is not generated yet, Name is the prefix followed by "*".
	Name string
}

// String returns "Kind namespace/name", without empty parts.
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

// OriginUnavailableClass is the origin of errors about a device class that does not exist or could not be read. Only these errors
// may disappear without a change to the claim. No other error has this origin.
const OriginUnavailableClass = "unavailable device class"

// Error lists the mistakes in the constraints of one object.
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

// errorAbout returns nil if there are no mistakes.
func errorAbout(object ObjectReference, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return &Error{Object: object, Errors: errs}
}
