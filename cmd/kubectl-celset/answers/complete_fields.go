// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// apiVersions maps a kind to its API version. types maps a kind to its Go type, whose json tags are the fields.
var (
	apiVersions = map[string]string{
		"ResourceClaim": "resource.k8s.io/v1", "ResourceClaimTemplate": "resource.k8s.io/v1", "DeviceClass": "resource.k8s.io/v1",
		"ResourceSlice": "resource.k8s.io/v1", "DeviceTaintRule": "resource.k8s.io/v1", "Pod": "v1", "Node": "v1",
		"PodGroup": schedulingapi.SchemeGroupVersion.String(), "DeviceAttributes": v1alpha1.SchemeGroupVersion.String(),
		"Placement": clusterv1beta1.GroupVersion.String(),
	}
	types = map[string]reflect.Type{
		"ResourceClaim": reflect.TypeFor[resourceapi.ResourceClaim](), "ResourceClaimTemplate": reflect.TypeFor[resourceapi.ResourceClaimTemplate](),
		"DeviceClass": reflect.TypeFor[resourceapi.DeviceClass](), "ResourceSlice": reflect.TypeFor[resourceapi.ResourceSlice](),
		"DeviceTaintRule": reflect.TypeFor[resourceapi.DeviceTaintRule](), "Pod": reflect.TypeFor[corev1.Pod](), "Node": reflect.TypeFor[corev1.Node](),
		"PodGroup": reflect.TypeFor[schedulingapi.PodGroup](), "DeviceAttributes": reflect.TypeFor[v1alpha1.DeviceAttributes](),
		"Placement": reflect.TypeFor[clusterv1beta1.Placement](),
	}
	// definitions are the kinds of the parameters of celset in claims and classes.
	definitions = map[string]reflect.Type{
		v1alpha1.Kind: reflect.TypeFor[v1alpha1.CELDeviceConstraint](), v1alpha1.PreferenceKind: reflect.TypeFor[v1alpha1.CELDevicePreference](),
		v1alpha1.NodeSetConstraintKind: reflect.TypeFor[v1alpha1.CELNodeSetConstraint](),
	}
)

// fieldOptions returns the fields of the object at the position.
func fieldOptions(at *cursor) []Completion {
	if at.kinds[0] == "" {
		return []Completion{{Label: "apiVersion", Apply: "apiVersion: "}, {Label: "kind", Apply: "kind: "}, {Label: "metadata", Apply: "metadata:"}, {Label: "spec", Apply: "spec:"}}
	}
	var options []Completion
	eachField(typeAt(at, at.path), func(of reflect.Type, field reflect.StructField, name string) {
		option := Completion{Label: name, Detail: detailOf(field.Type), Info: infoOf(of, name), Apply: name + ":"}
		if isScalar(field.Type) {
			option.Apply += " "
		}
		options = append(options, option)
	})
	return options
}

// typeAt returns the type of the value at a path, or nil.
func typeAt(at *cursor, path []string) reflect.Type {
	of := types[at.kinds[0]]
	for depth, step := range path {
		for of != nil && of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case of == nil:
			return nil
		case step == "[]" && of.Kind() == reflect.Slice, of.Kind() == reflect.Map:
			of = of.Elem()
		case of.Kind() == reflect.Struct:
			var next reflect.Type
			eachField(of, func(_ reflect.Type, field reflect.StructField, name string) {
				if name == step {
					next = field.Type
				}
			})
			if of = next; of == reflect.TypeFor[runtime.RawExtension]() {
				of = definitions[at.kinds[depth+1]]
				if of == nil {
					of = reflect.TypeFor[v1alpha1.CELDeviceConstraint]()
				}
			}
		default:
			return nil
		}
	}
	for of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

// eachField calls do for each field of a struct, with the fields of embedded structs.
func eachField(of reflect.Type, do func(of reflect.Type, field reflect.StructField, name string)) {
	if of == nil || of.Kind() != reflect.Struct {
		return
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous:
			eachField(field.Type, do)
		case name != "" && name != "status" && name != "managedFields":
			do(of, field, name)
		}
	}
}

func isScalar(of reflect.Type) bool {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of.Kind() != reflect.Struct && of.Kind() != reflect.Slice && of.Kind() != reflect.Map
}

func detailOf(of reflect.Type) string {
	switch {
	case of.Kind() == reflect.Pointer:
		return detailOf(of.Elem())
	case of.Kind() == reflect.Slice:
		return "list of " + detailOf(of.Elem())
	case of.Kind() == reflect.Map:
		return "map"
	case of.Kind() == reflect.Struct:
		return of.Name()
	default:
		return of.Kind().String()
	}
}

// infoOf returns the first sentence of a field's documentation.
func infoOf(of reflect.Type, name string) string {
	documented, ok := reflect.Zero(of).Interface().(interface{ SwaggerDoc() map[string]string })
	if !ok {
		return ""
	}
	first, _, more := strings.Cut(documented.SwaggerDoc()[name], ". ")
	if more {
		first += "."
	}
	return first
}

// valueOptions returns the values for the key at the position.
func valueOptions(at *cursor, known *names) []Completion {
	key := at.path[len(at.path)-1]
	switch key {
	case "kind":
		if len(at.path) == 1 {
			return options("kind", keysOf(apiVersions)...)
		}
		return options("kind", keysOf(definitions)...)
	case "apiVersion":
		if len(at.path) > 1 {
			return options("version", v1alpha1.SchemeGroupVersion.String())
		}
		if version := apiVersions[at.kinds[0]]; version != "" {
			return options("version", version)
		}
		return options("version", valuesOf(apiVersions)...)
	case "deviceClassName":
		return options("DeviceClass", known.classes...)
	case "resourceClaimTemplateName":
		return options("ResourceClaimTemplate", known.templates...)
	case "resourceClaimName":
		return options("ResourceClaim", known.claims...)
	case "matchAttribute", "distinctAttribute":
		result := attributeOptions(known)
		if key == "distinctAttribute" {
			return result
		}
		for _, name := range known.others {
			result = append(result, Completion{Label: v1alpha1.AttributeDomain + "/" + name, Detail: "constraint"})
		}
		return result
	case "driver":
		return append(options("driver", driversOf(known)...), options("driver of constraints", v1alpha1.DriverName)...)
	case "policy":
		var result []Completion
		for _, policy := range v1alpha1.Policies {
			result = append(result, Completion{Label: string(policy.Name), Detail: "policy", Info: "Takes the set " + policy.Description + "."})
		}
		return result
	}
	if key == "operator" && slices.Contains(at.path, "matchExpressions") {
		return options("value", string(metav1.LabelSelectorOpIn), string(metav1.LabelSelectorOpNotIn), string(metav1.LabelSelectorOpExists), string(metav1.LabelSelectorOpDoesNotExist))
	}
	return options("value", enums[key]...)
}

// enums maps a key to its values.
var enums = map[string][]string{
	"allocationMode": {string(resourceapi.DeviceAllocationModeExactCount), string(resourceapi.DeviceAllocationModeAll)},
	"failurePolicy":  {string(v1alpha1.FailurePolicyFail), string(v1alpha1.FailurePolicyNodeDoesNotFit)},
	"enforcement":    {string(v1alpha1.EnforcementOnReference), string(v1alpha1.EnforcementAlways)},
	"operator":       {string(resourceapi.DeviceTolerationOpExists), string(resourceapi.DeviceTolerationOpEqual)},
	"effect":         {string(resourceapi.DeviceTaintEffectNoSchedule), string(resourceapi.DeviceTaintEffectNoExecute)},
	"schedulerName":  {"celset-scheduler"},
}

func options(detail string, labels ...string) []Completion {
	result := make([]Completion, len(labels))
	for i, label := range labels {
		result[i] = Completion{Label: label, Detail: detail}
	}
	return result
}

func keysOf[V any](of map[string]V) (keys []string) {
	for key := range of {
		keys = append(keys, key)
	}
	return keys
}

func valuesOf(of map[string]string) (values []string) {
	for _, value := range of {
		values = append(values, value)
	}
	return values
}
