// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// DriverName is the driver of the opaque configuration that holds a
	// definition. Driver names are compared byte by byte, as Kubernetes does.
	DriverName = "celset.dev"

	// AttributeDomain is the domain of the attribute name that refers to a
	// definition: matchAttribute celset.dev/<name>.
	AttributeDomain = "celset.dev"

	// MaxExpressionLength is the maximum length of an expression, in bytes. It
	// is the limit of the expression of a CEL device selector. The API server
	// holds the whole of the parameters to 10 KiB too, so that a stored
	// expression is a little shorter.
	MaxExpressionLength = 10 * 1024

	// FeatureGate is the name of the feature gate of CEL device constraints,
	// as KEP-5254 names it.
	FeatureGate = "DRACELDeviceConstraint"
)

// CELDeviceConstraint defines a constraint by a CEL expression. It is the type
// of opaque.parameters in a configuration for the driver [DriverName].
//
// It holds nothing but strings: assigning it copies it.
type CELDeviceConstraint struct {
	metav1.TypeMeta `json:",inline"`

	// Name is what claims refer to, as matchAttribute celset.dev/<name>. It is
	// a C identifier of at most 32 bytes, which is what the API server accepts
	// after the slash of a fully qualified name. It is unique within the claim
	// or class that holds the definition.
	Name string `json:"name"`

	// Expression is a CEL expression that returns a bool. Its variable
	// `devices` is the list of all devices allocated for the covered requests.
	// At most [MaxExpressionLength] bytes.
	Expression string `json:"expression"`
}
