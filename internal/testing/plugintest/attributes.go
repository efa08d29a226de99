// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// AttributesResource is the resource of DeviceAttributes.
var AttributesResource = v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.DeviceAttributesResource)

// NewAttributesClient returns a client of a fake API with DeviceAttributes objects.
func NewAttributesClient(t testing.TB, objects ...*v1alpha1.DeviceAttributes) *dynamicfake.FakeDynamicClient {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{AttributesResource: v1alpha1.DeviceAttributesKind + "List"})
	for _, object := range objects {
		require.NoError(t, client.Tracker().Create(AttributesResource, Unstructured(t, object), ""))
	}
	return client
}

// Unstructured converts an object for a dynamic client.
func Unstructured(t testing.TB, object *v1alpha1.DeviceAttributes) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: content}
}

// AttributesTable returns an object whose table gives each of the devices an attribute x.
func AttributesTable(name string, x map[string]int64) *v1alpha1.DeviceAttributes {
	object := &v1alpha1.DeviceAttributes{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.DeviceAttributesKind},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Spec:       v1alpha1.DeviceAttributesSpec{Driver: Driver, Domain: v1alpha1.DefaultAttributesDomain, Table: &v1alpha1.AttributeTable{Key: v1alpha1.TableKeyName}},
	}
	for device, value := range x {
		object.Spec.Table.Rows = append(object.Spec.Table.Rows, v1alpha1.AttributeRow{
			Key: device, Values: map[string]resourceapi.DeviceAttribute{"x": {IntValue: ptr.To(value)}},
		})
	}
	slices.SortFunc(object.Spec.Table.Rows, func(a, b v1alpha1.AttributeRow) int { return cmp.Compare(a.Key, b.Key) })
	return object
}
