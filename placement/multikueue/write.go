// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package multikueue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/celset/celset/apis/wellknown"
)

// write nominates clusters for a Workload. object must have been read from the API server. An empty list removes the
// nomination.
func (r *reconciler) write(ctx context.Context, object *unstructured.Unstructured, clusters []string) error {
	applied, err := r.fields.of(object)
	if err != nil {
		return fmt.Errorf("nominate clusters of Workload %s/%s: find what field manager %s owns: %w", object.GetNamespace(), object.GetName(), wellknown.FieldManagerKueue, err)
	}
	applied.SetGroupVersionKind(object.GroupVersionKind())
	applied.SetNamespace(object.GetNamespace())
	applied.SetName(object.GetName())
	applied.SetResourceVersion(object.GetResourceVersion())
	unstructured.RemoveNestedField(applied.Object, "status", "nominatedClusterNames")
	if len(clusters) > 0 {
		if err := unstructured.SetNestedStringSlice(applied.Object, clusters, "status", "nominatedClusterNames"); err != nil {
			return err
		}
	}
	return r.status.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(wellknown.FieldManagerKueue), client.ForceOwnership)
}

// ownedFields finds the fields of a Workload's status that Kueue's field manager has applied. It needs the API server's schema,
// which defines the keys of list items.
type ownedFields struct {
	openAPI openapi.Client
	mutex   sync.Mutex
	// types caches Kueue's types. If an object does not match them, Kueue may have been upgraded, so the cache is cleared.
	types managedfields.TypeConverter
}

// of returns a copy of a Workload with only the fields that Kueue's field manager has applied.
func (o *ownedFields) of(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result := &unstructured.Unstructured{Object: map[string]any{}}
	entries := object.GetManagedFields()
	i := slices.IndexFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == wellknown.FieldManagerKueue && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "status"
	})
	if i < 0 || entries[i].FieldsV1 == nil {
		return result, nil
	}
	fields := &fieldpath.Set{}
	if err := fields.FromJSON(entries[i].FieldsV1.GetRawReader()); err != nil {
		return nil, err
	}
	value, err := o.typed(object)
	if err != nil {
		return nil, err
	}
	if owned, ok := value.ExtractItems(fields.Leaves()).AsValue().Unstructured().(map[string]any); ok {
		result.Object = owned
	}
	if _, ok := result.Object["status"].(map[string]any); !ok {
		// After an apply without fields, such as an empty nomination, the field manager owns the whole status.
		delete(result.Object, "status")
	}
	return result, nil
}

func (o *ownedFields) typed(object *unstructured.Unstructured) (*typed.TypedValue, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.types == nil {
		types, err := typesOf(o.openAPI)
		if err != nil {
			return nil, err
		}
		o.types = types
	}
	value, err := o.types.ObjectToTyped(object)
	if err != nil {
		o.types = nil
	}
	return value, err
}

// typesOf returns Kueue's types from the schema that the API server publishes.
func typesOf(client openapi.Client) (managedfields.TypeConverter, error) {
	paths, err := client.Paths()
	if err != nil {
		return nil, err
	}
	path, served := paths["apis/"+version.String()]
	if !served {
		return nil, fmt.Errorf("the API server does not describe %s yet", version)
	}
	content, err := path.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(document.Components.Schemas, false)
}
