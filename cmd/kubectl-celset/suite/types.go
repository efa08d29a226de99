// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kind is the kind of files with test cases.
const Kind = "ExpressionTest"

// ExpressionTest is a file with test cases for expressions over devices, nodes or clusters. The command
// "kubectl celset test" runs the cases without a cluster.
type ExpressionTest struct {
	metav1.TypeMeta `json:",inline"`
	// Setting applies to all cases. A case adds to files, objects and featureGates. Its other fields replace the fields here.
	Setting `json:",inline"`
	// Cases are the test cases. Their names must differ.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Cases []Case `json:"cases"`
}

// Case is a test case.
type Case struct {
	// Name is the name of the case, on one line.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	Name    string `json:"name"`
	Setting `json:",inline"`
	// Expect are the expectations. All of them must be true.
	// +optional
	Expect Expectations `json:"expect,omitzero"`
}

// Setting has the objects of a case, and the question about them.
type Setting struct {
	// Files are the files with the objects: YAML, JSON, or Markdown pages with objects in blocks of the language yaml. The paths are
	// relative to the test file. A path can also be a directory of YAML and JSON files.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Files []string `json:"files,omitempty"`
	// Objects are further objects.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:pruning:PreserveUnknownFields
	Objects []runtime.RawExtension `json:"objects,omitempty"`
	// Machine adds the DeviceClasses and ResourceSlices of a model of a machine.
	// +optional
	Machine *Machine `json:"machine,omitempty"`
	// InUse are the devices that other claims have.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	InUse    []InUse `json:"inUse,omitempty"`
	Question `json:",inline"`
}

// Question selects the object whose allocation or scheduling is tested.
type Question struct {
	// Claim is the spec of a ResourceClaim, as a short form of an object with the name "claim". It is the subject.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Claim *runtime.RawExtension `json:"claim,omitempty"`
	// Subject is the tested object: claim/NAME, template/NAME, pod/NAME, podgroup/NAME or placement/NAME. For the expectation errors,
	// it can also be class/NAME or deviceattributes/NAME. The default is the only pod, claim, template, group or Placement.
	// +optional
	Subject string `json:"subject,omitempty"`
	// Namespace is the namespace of the subject, and of objects without a namespace. The default is "default".
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Nodes are the names of the nodes to try. The default is all nodes.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Nodes []string `json:"nodes,omitempty"`
	// FeatureGates are feature gates of kube-scheduler that differ from the defaults.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Now is the time at which a Placement is decided. The default is the current time.
	// +optional
	Now *metav1.Time `json:"now,omitempty"`
}

// Machine is a model of a machine.
type Machine struct {
	// Name is the name of the machine. For an unknown name, the error lists all names.
	Name string `json:"name"`
	// Nodes is the number of nodes with this machine: node-1, node-2, and so on. Without a number, each Node object is such a machine.
	// If there are no Node objects, the machine is node-1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Nodes int `json:"nodes,omitempty"`
}

// InUse are devices that other claims have.
type InUse struct {
	// Nodes are the names of the nodes. The default is every node.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Nodes []string `json:"nodes,omitempty"`
	// Driver is the name of the driver. The default is every driver.
	// +optional
	Driver string `json:"driver,omitempty"`
	// Devices are the names of the devices.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Devices []string `json:"devices,omitempty"`
	// Count is the number of devices in use on each node, the first in the order of publication. It replaces devices.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Count int `json:"count,omitempty"`
	// Capacity is the consumed capacity of a device that several claims can share. The default is the whole capacity.
	// +optional
	Capacity map[string]string `json:"capacity,omitempty"`
}

// Expectations are the expected answer.
type Expectations struct {
	// Devices are the chosen devices, in any order, on the first node that fits. A name can have its driver in front, and its pool:
	// gpu-0, gpu.example.com/gpu-0 or gpu.example.com/node-1/gpu-0.
	// +optional
	Devices []string `json:"devices,omitempty"`
	// Requests maps the name of a request to its chosen devices. The devices of other requests are not compared.
	// +optional
	Requests map[string][]string `json:"requests,omitempty"`
	// NodesThatFit are all nodes on which the claims fit, in any order.
	// +optional
	NodesThatFit []string `json:"nodesThatFit,omitempty"`
	// Nodes are the chosen nodes of a PodGroup, in any order.
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// Clusters are the selected clusters of a Placement, in any order.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
	// Satisfies is a CEL expression that must be true. It reads the chosen devices as "devices", the nodes of a PodGroup as "nodes", or
	// each selected cluster as "managedCluster".
	// +optional
	Satisfies string `json:"satisfies,omitempty"`
	// None is a part of the reason why nothing is chosen. Nothing must be chosen then.
	// +optional
	None string `json:"none,omitempty"`
	// Steps limits the work of the search for devices.
	// +optional
	Steps *Steps `json:"steps,omitempty"`
	// Errors are parts of the errors that "kubectl celset check" reports, a part for each error.
	// +optional
	Errors []string `json:"errors,omitempty"`
}

// Steps limits the number of steps of a search.
type Steps struct {
	// AtMost is the largest permitted number of steps on one node.
	// +kubebuilder:validation:Minimum=0
	AtMost int64 `json:"atMost"`
}
