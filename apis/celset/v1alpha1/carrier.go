// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Carrier is the specification of a claim, which may contain constraints, together with the object and the path that messages
// name.
type Carrier struct {
	// Object is the object that contains the specification.
	Object ObjectReference
	// Path is the path of the specification in Object.
	Path *field.Path
	// Spec is the specification. It is not modified.
	Spec *resourceapi.ResourceClaimSpec
	// containers is the result of ContainersOf for a claim. It is "" for a template.
	containers string
}

// ClaimCarrier returns the carrier for the specification of a claim.
func ClaimCarrier(claim *resourceapi.ResourceClaim) Carrier {
	return Carrier{
		Object: referenceTo("ResourceClaim", claim),
		Path:   field.NewPath("spec"),
		Spec:   &claim.Spec,

		containers: ContainersOf(claim),
	}
}

// TemplateCarrier returns the carrier for the specification in a template, which the template's claims get.
func TemplateCarrier(template *resourceapi.ResourceClaimTemplate) Carrier {
	return Carrier{
		Object: referenceTo("ResourceClaimTemplate", template),
		Path:   field.NewPath("spec", "spec"),
		Spec:   &template.Spec.Spec,
	}
}

// Definitions returns the valid definitions that the claim itself contains. It makes every check that doesn't need device
// classes. If some definitions are invalid, it returns the valid ones together with an [*Error].
func (c Carrier) Definitions() ([]Definition, error) {
	if err := c.CheckTexts(); err != nil {
		return nil, err
	}
	path := c.Path.Child("devices")
	errs := validateDerivedAttributes(&c.Spec.Devices, path)
	errs = append(errs, validateReferences(&c.Spec.Devices, path)...)
	definitions, definitionErrs := decodeAll(claimConfigurations(&c.Spec.Devices), c.Object, path.Child("config"))
	return definitions, errorAbout(c.Object, append(errs, definitionErrs...))
}

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
