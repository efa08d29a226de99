// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	drav1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	drav1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// scheme decodes all versions of resource.k8s.io and converts them to the newest one.
var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(policy.AddToScheme(scheme))
	utilruntime.Must(scheduling.AddToScheme(scheme))
	utilruntime.Must(schedulingv1beta1.AddToScheme(scheme))
	utilruntime.Must(resourceapi.AddToScheme(scheme))
	utilruntime.Must(drav1beta1.AddToScheme(scheme))
	utilruntime.Must(drav1beta2.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
}

var (
	lenient = serializer.NewCodecFactory(scheme).UniversalDeserializer()
	strict  = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
)

// Document is an object from a file.
type Document struct {
	// Source is the name of the file. If the file has several objects, an index follows.
	Source string
	Object *unstructured.Unstructured
	// Position is set only by [Decode].
	Position
}

// Position says where a document is in a text with several documents.
type Position struct {
	// Text is the YAML or JSON of the document. Line is its first line, counted from 1.
	Text []byte
	Line int
	// IsItem is set if the document is an item of a list. Item is the index in the list.
	IsItem bool
	Item   int
}

// ClassesIn returns the device classes among documents.
func ClassesIn(documents []Document) (*Objects, error) {
	objects := &Objects{}
	for _, document := range documents {
		if document.Object.GetKind() == "DeviceClass" {
			if err := objects.Add(document, ""); err != nil {
				return nil, err
			}
		}
	}
	return objects, nil
}

// Add adds the object of a document if its kind is supported, and otherwise records its name. namespace is the namespace of an
// object without one. An unknown field is an error in claims, templates, classes, groups and DeviceAttributes, as in kubectl
// apply.
func (o *Objects) Add(document Document, namespace string) error {
	kind := document.Object.GroupVersionKind()
	passedOver := strings.Join(strings.Fields(fmt.Sprintf("%s: %s %s", document.Source, kind.Kind, document.Object.GetName())), " ")
	if !scheme.Recognizes(kind) {
		o.Ignored = append(o.Ignored, passedOver)
		if warning := misspelt(document); warning != "" {
			o.Warnings = append(o.Warnings, warning)
		}
		return nil
	}
	decoder := lenient
	switch kind.Kind {
	case "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "PodGroup", "DeviceAttributes":
		decoder = strict
	}
	object, err := decode(decoder, document.Object)
	if err != nil {
		return fmt.Errorf("%s: %s %s: %w%s", document.Source, kind.Kind, document.Object.GetName(), err, hint(err))
	}
	setDefaults(object)
	if !o.add(object, namespace) {
		o.Ignored = append(o.Ignored, passedOver)
	}
	return nil
}

// hint returns advice for the one unknown field that users are most likely to write.
func hint(err error) string {
	if strings.Contains(err.Error(), "constraints[") && strings.Contains(err.Error(), `.cel"`) {
		return `: this is the form of KEP-5254, which no API server stores: convert it with "kubectl celset convert"`
	}
	return ""
}

func decode(decoder runtime.Decoder, from *unstructured.Unstructured) (runtime.Object, error) {
	raw, err := from.MarshalJSON()
	if err != nil {
		return nil, err
	}
	object, kind, err := decoder.Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	if kind.Group != resourceapi.GroupName || kind.Version == resourceapi.SchemeGroupVersion.Version {
		return object, nil
	}
	newest := resourceapi.SchemeGroupVersion.WithKind(kind.Kind)
	converted, err := scheme.New(newest)
	if err != nil {
		return nil, err
	}
	if err := scheme.Convert(object, converted, nil); err != nil {
		return nil, err
	}
	return converted, nil
}
