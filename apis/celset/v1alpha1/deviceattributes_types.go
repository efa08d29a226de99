// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// DefaultAttributesDomain is the domain of attributes if a [DeviceAttributes] specifies none.
	DefaultAttributesDomain = "topology.celset.dev"

	// TableKeyName is the value of [AttributeTable].Key that compares rows with the names of devices.
	TableKeyName = "name"

	// MaxDeviceAttributes is the maximum number of DeviceAttributes objects in effect.
	MaxDeviceAttributes = 64

	// MaxComputedAttributes is the maximum number of computed attributes of a DeviceAttributes object.
	MaxComputedAttributes = 16

	// MaxAttributeRows is the maximum number of rows of a DeviceAttributes object.
	MaxAttributeRows = 1024

	// MaxRowValues is the maximum number of attributes in a row.
	MaxRowValues = 16

	// MaxStatusExamples is the maximum number of examples in each list of a status.
	MaxStatusExamples = 10
)

// DeviceAttributes adds attributes to devices, for drivers that don't publish them. Schedulers with celset read the devices as if
// the driver had published the attributes. The attributes are computed by expressions or listed in a table. They never replace an
// attribute of a driver.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=deviceattributes,singular=deviceattributes,scope=Cluster,shortName=devattr,categories=celset
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.driver`
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.spec.domain`
// +kubebuilder:printcolumn:name="Devices",type=integer,JSONPath=`.status.devices`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Complete",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DeviceAttributes struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec specifies the devices and their attributes.
	// +required
	Spec DeviceAttributesSpec `json:"spec"`

	// status reports the devices that got attributes, and the mistakes. The scheduler writes it.
	// +optional
	Status DeviceAttributesStatus `json:"status,omitempty"`
}

// DeviceAttributesList is a list of DeviceAttributes.
// +kubebuilder:object:root=true
type DeviceAttributesList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the metadata of the list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects.
	Items []DeviceAttributes `json:"items"`
}

// DeviceAttributesSpec specifies devices and their attributes. It has computed attributes, a table, or both.
// +kubebuilder:object:generate=true
// +kubebuilder:validation:XValidation:rule="has(self.attributes) || has(self.table)",message="attributes or table is required"
// +kubebuilder:validation:XValidation:rule="!has(self.domain) || self.domain != self.driver",message="domain must differ from driver: a driver alone publishes in its domain"
type DeviceAttributesSpec struct {
	// driver is the name of the driver that publishes the devices.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$`
	Driver string `json:"driver"`

	// nodeSelector selects the nodes of the devices by their labels. The default is all nodes, and devices without a node.
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`

	// domain is the domain of the attributes: an attribute x has the name <domain>/x. No driver may publish an attribute in this
	// domain. The domain celset.dev and the domains of Kubernetes are reserved. The default is topology.celset.dev.
	// +optional
	// +default="topology.celset.dev"
	// +kubebuilder:default="topology.celset.dev"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self != 'celset.dev' && self != 'k8s.io' && self != 'kubernetes.io' && !self.endsWith('.k8s.io') && !self.endsWith('.kubernetes.io')",message="the domain is reserved"
	Domain string `json:"domain,omitempty"`

	// attributes are computed for each device by an expression. At most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Attributes []ComputedAttribute `json:"attributes,omitempty"`

	// table lists attributes device by device.
	// +optional
	Table *AttributeTable `json:"table,omitempty"`
}

// ComputedAttribute is an attribute that an expression computes.
// +kubebuilder:object:generate=true
type ComputedAttribute struct {
	// name is the name of the attribute in the domain. It is a C identifier of at most 32 bytes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// expression is a CEL expression that returns an int, a bool, a string, a semver or a list of one of these types. Its variables
	// are `device`, as in a device selector and with the field name, and `node` with the fields name and labels. The expression
	// reads the attributes of the driver, and no attribute of a DeviceAttributes object. A device whose expression fails does not
	// get the attribute. If the expression returns optional.none(), the device does not get the attribute either.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression"`
}

// AttributeTable lists attributes of devices. A row applies to the device with the key of the row, on each selected node.
// +kubebuilder:object:generate=true
type AttributeTable struct {
	// key identifies the row of a device: "name" for the name of the device, or the qualified name of an attribute that the driver
	// publishes, such as gpu.example.com/uuid.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:Pattern=`^(name|[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*/[A-Za-z_][A-Za-z0-9_]*)$`
	Key string `json:"key"`

	// rows are the rows of the table. At most 1,024.
	// +required
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	Rows []AttributeRow `json:"rows"`
}

// AttributeRow has the attributes of a device.
// +kubebuilder:object:generate=true
type AttributeRow struct {
	// key is the name of the device, or the value of the key attribute. An int is compared in decimal form, a bool as true or false.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Key string `json:"key"`

	// values maps the name of an attribute in the domain to its value. A name is a C identifier of at most 32 bytes. At most 16.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 32)",message="the name of an attribute has at most 32 bytes"
	// +kubebuilder:validation:XValidation:rule="self.all(name, [has(self[name].int), has(self[name].bool), has(self[name].string), has(self[name].version), has(self[name].ints), has(self[name].bools), has(self[name].strings), has(self[name].versions)].filter(is, is).size() == 1)",message="an attribute has exactly one value"
	Values map[string]resourceapi.DeviceAttribute `json:"values"`
}

// DeviceAttributesStatus reports the effect of a DeviceAttributes object.
// +kubebuilder:object:generate=true
type DeviceAttributesStatus struct {
	// observedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// devices is the number of devices of the driver on the selected nodes.
	// +optional
	Devices int32 `json:"devices"`

	// attributes is the number of attributes that these devices got.
	// +optional
	Attributes int32 `json:"attributes"`

	// unmatchedRows are the rows of the table that match no device.
	// +optional
	UnmatchedRows *UnmatchedRows `json:"unmatchedRows,omitempty"`

	// failedExpressions are the expressions that failed on a device.
	// +optional
	FailedExpressions *FailedExpressions `json:"failedExpressions,omitempty"`

	// conflicts are attributes that another object defines with a different value. No device gets them.
	// +optional
	Conflicts *AttributeConflicts `json:"conflicts,omitempty"`

	// conditions are the conditions Accepted, Complete and Conflicted. Package wellknown has their names and reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// UnmatchedRows counts rows without a device.
// +kubebuilder:object:generate=true
type UnmatchedRows struct {
	// count is the number of rows.
	Count int32 `json:"count"`
	// keys are the keys of the first rows. At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Keys []string `json:"keys,omitempty"`
}

// FailedExpressions counts evaluations that failed.
// +kubebuilder:object:generate=true
type FailedExpressions struct {
	// count is the number of failed evaluations: an expression on a device.
	Count int32 `json:"count"`
	// first are the first failures. At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	First []FailedExpression `json:"first,omitempty"`
}

// FailedExpression is an expression that failed on a device.
// +kubebuilder:object:generate=true
type FailedExpression struct {
	// attribute is the name of the computed attribute.
	Attribute string `json:"attribute"`
	// device identifies the device as <driver>/<pool>/<device>.
	Device string `json:"device"`
	// message describes the failure.
	Message string `json:"message"`
}

// AttributeConflicts counts attributes with different values.
// +kubebuilder:object:generate=true
type AttributeConflicts struct {
	// count is the number of conflicts: an attribute of a device.
	Count int32 `json:"count"`
	// first are the first conflicts. At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	First []AttributeConflict `json:"first,omitempty"`
}

// AttributeConflict is an attribute of a device that two objects define differently.
// +kubebuilder:object:generate=true
type AttributeConflict struct {
	// attribute is the qualified name of the attribute.
	Attribute string `json:"attribute"`
	// device identifies the device as <driver>/<pool>/<device>.
	Device string `json:"device"`
	// object is the name of the other DeviceAttributes object. It is the name of this object if its table and its expression differ.
	Object string `json:"object"`
}
