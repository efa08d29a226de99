// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// DriverName is the driver of the opaque configuration that holds a definition. Driver names are compared byte by byte, as in
	// Kubernetes.
	DriverName = "celset.dev"

	// AttributeDomain is the domain of the attribute name that refers to a definition: matchAttribute celset.dev/<name>.
	AttributeDomain = "celset.dev"

	// MaxExpressionLength is the maximum length of an expression in bytes, as for a CEL device selector. The API server limits all
	// parameters together to 10 KiB as well, so that the longest stored expression is a little shorter.
	MaxExpressionLength = 10 * 1024

	// MaxVariables is the maximum number of variables of a definition.
	MaxVariables = 32

	// FeatureGate is the name of the feature gate of CEL device constraints in KEP-5254.
	FeatureGate = "DRACELDeviceConstraint"
)

// CELDeviceConstraint defines a constraint by a CEL expression. It is the type of opaque.parameters in a configuration for the
// driver celset.dev.
type CELDeviceConstraint struct {
	metav1.TypeMeta `json:",inline"`

	// name is the name of the constraint. Claims refer to it as matchAttribute celset.dev/<name>. It is a C identifier of at
	// most 32 bytes, because the API server accepts nothing else after the slash of a fully qualified name. It is unique within
	// the claim or class that contains the definition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// expression is a CEL expression that returns a bool. Its variable `devices` is the list of all devices allocated for the
	// covered requests. The expression and the variables have at most 10,240 bytes together.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression"`

	// variables are expressions over one device. The expression reads a variable of a device d as d.variables.<name>. At most 32.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Variables []Variable `json:"variables,omitempty"`

	// enforcement specifies whether the constraint applies without a reference. The default is OnReference. Claims allow no other
	// value.
	// +optional
	// +default="OnReference"
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// failurePolicy specifies how a failed evaluation is handled. An evaluation fails, for example, because a device lacks an
	// attribute. The default is Fail.
	// +optional
	// +default="Fail"
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
}

// Enforcement specifies the claims to which a constraint applies.
// +enum
type Enforcement string

const (
	// EnforcementOnReference means that the constraint applies to claims that refer to it.
	EnforcementOnReference Enforcement = "OnReference"
	// EnforcementAlways means that the constraint also applies without a reference. It then applies to each request of the
	// DeviceClass for two or more devices, over the devices of that request alone.
	EnforcementAlways Enforcement = "Always"
)

// FailurePolicy specifies how a failed evaluation of a constraint is handled.
// +enum
type FailurePolicy string

const (
	// FailurePolicyFail means that the attempt to allocate the claim ends on all nodes, as in KEP-5254. The expression is wrong for
	// some devices, and its author should not discover that by chance.
	FailurePolicyFail FailurePolicy = "Fail"
	// FailurePolicyNodeDoesNotFit means that the claim does not fit the node on whose devices the evaluation failed. The search
	// continues on other nodes.
	FailurePolicyNodeDoesNotFit FailurePolicy = "NodeDoesNotFit"
)

// Variable is a named expression over one device or node.
type Variable struct {
	// name is the name of the variable. Expressions read it as variables.<name>. It is a C identifier of at most 32 bytes, unique
	// within the definition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// expression is a CEL expression of any type. Its variable is `device`, as in a device selector, or `node` in a
	// CELNodeSetConstraint. It can read variables that are defined before this one, as `variables.<name>`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression"`
}

// CELDevicePreference specifies which set of devices is best. It is the type of opaque.parameters in a configuration for the
// driver celset.dev, as [CELDeviceConstraint] is. It needs no reference. In a claim it applies to the requests that it names. In
// a DeviceClass it applies to each request of the class alone, unless a preference of the claim applies to that request.
type CELDevicePreference struct {
	metav1.TypeMeta `json:",inline"`

	// name is the name of the preference in messages. It is a C identifier of at most 32 bytes, unique among the preferences of the
	// claim or class.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// type specifies which of the fields expression and policy is set. The other field must be absent.
	// +required
	// +unionDiscriminator
	Type PreferenceType `json:"type"`

	// expression is a CEL expression that returns an int. Among the sets that satisfy every constraint, a set with the greatest
	// value is allocated. If several sets have that value, the first one is allocated. The variable `devices` is the list of all
	// devices allocated for the requests. The expression and the variables have at most 10,240 bytes together.
	// +optional
	// +unionMember
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression,omitempty"`

	// policy is a built-in preference about the devices that remain free. Expressions can't read these devices.
	// +optional
	// +unionMember
	Policy PreferencePolicy `json:"policy,omitempty"`

	// variables are expressions over one device. The expression reads a variable of a device d as d.variables.<name>. Only the type
	// Expression allows variables. At most 32.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Variables []Variable `json:"variables,omitempty"`

	// requests are the names of the requests to which the preference applies, as "request" or "request/alternative". The default is
	// all requests of the claim. A class can't name requests.
	// +optional
	// +listType=atomic
	Requests []string `json:"requests,omitempty"`
}

// PreferenceType names the member of a [CELDevicePreference] that is set.
// +enum
type PreferenceType string

const (
	// PreferenceTypeExpression means that expression is set.
	PreferenceTypeExpression PreferenceType = "Expression"
	// PreferenceTypePolicy means that policy is set.
	PreferenceTypePolicy PreferenceType = "Policy"
)

// CELNodeSetConstraint specifies by a CEL expression on which nodes the pods of a PodGroup may run together. It is the type of
// opaque.parameters in a configuration for the driver celset.dev. A claim of the pods contains the configuration, or a class that
// such a claim uses. It is also the type of the annotation celset.dev/node-set-constraint. A PodGroup refers to it by the
// topology key celset.dev/<name>. No node has such a label, so a scheduler that does not support these constraints places no pod
// of the group.
type CELNodeSetConstraint struct {
	metav1.TypeMeta `json:",inline"`

	// name is the name of the constraint. PodGroups refer to it as the topology key celset.dev/<name>. It is a C identifier of
	// at most 32 bytes. Because a topology key is a label key, name begins with a letter and ends with a letter or digit.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// expression is a CEL expression that returns a bool. Its variable `nodes` is the list of the nodes on which the pods of the
	// group run. The expression, the variables and the preference have at most 10,240 bytes together.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression"`

	// preference is a CEL expression over `nodes` that returns an int. Among the sets that satisfy the expression, a set with the
	// greatest value is chosen. If several sets have that value, the first one is chosen.
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	Preference string `json:"preference,omitempty"`

	// variables are expressions over one node, `node`. The other expressions read a variable of a node n as n.variables.<name>. At
	// most 32.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Variables []Variable `json:"variables,omitempty"`

	// podsPerNode is the maximum number of pods of the group on a node, from 1 to [MaxNodeSetSize]. The default is 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	PodsPerNode *int32 `json:"podsPerNode,omitempty"`
}
