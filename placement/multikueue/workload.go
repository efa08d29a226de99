// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package multikueue

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// workload holds the fields of a Workload that this controller reads. Kueue's module with the full type requires a hundred
// other modules.
type workload struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Conditions      []metav1.Condition `json:"conditions,omitempty"`
		AdmissionChecks []struct {
			Name  string `json:"name"`
			State string `json:"state"`
		} `json:"admissionChecks,omitempty"`
		ClusterName           string   `json:"clusterName,omitempty"`
		NominatedClusterNames []string `json:"nominatedClusterNames,omitempty"`
	} `json:"status"`
}

func read(object *unstructured.Unstructured) (*workload, error) {
	w := &workload{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, w); err != nil {
		return nil, fmt.Errorf("read Workload %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return w, nil
}

// essence returns a copy of a Workload with only the fields that [read] and the cache need.
func essence(object *unstructured.Unstructured) *unstructured.Unstructured {
	result := empty(object.GroupVersionKind())
	result.SetNamespace(object.GetNamespace())
	result.SetName(object.GetName())
	result.SetUID(object.GetUID())
	result.SetResourceVersion(object.GetResourceVersion())
	result.SetDeletionTimestamp(object.GetDeletionTimestamp())
	if name, named := object.GetLabels()[clusterv1beta1.PlacementLabel]; named {
		result.SetLabels(map[string]string{clusterv1beta1.PlacementLabel: name})
	}
	if number, numbered := object.GetAnnotations()[componentNumber]; numbered {
		result.SetAnnotations(map[string]string{componentNumber: number})
	}
	status, _ := object.Object["status"].(map[string]any)
	kept := map[string]any{}
	for _, field := range []string{"conditions", "admissionChecks", "clusterName", "nominatedClusterNames"} {
		if value, there := status[field]; there {
			kept[field] = value
		}
	}
	result.Object["status"] = kept
	return result
}

// reserved returns the condition QuotaReserved if its status is True, otherwise nil.
func (w *workload) reserved() *metav1.Condition {
	condition := meta.FindStatusCondition(w.Status.Conditions, "QuotaReserved")
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

// waits reports whether a Workload needs a nomination while an admission check of MultiKueue is pending. An evicted Workload
// does not: it keeps its quota until its job is suspended, and Kueue would not remove a nomination made meanwhile, and would
// use it at the next reservation. If a job has several Workloads, Kueue itself nominates the cluster of the first Workload for
// the others.
func (w *workload) waits() bool {
	number, numbered := w.Annotations[componentNumber]
	return w.DeletionTimestamp.IsZero() && w.reserved() != nil && !w.is("Evicted") && !w.is("Finished") &&
		w.Status.ClusterName == "" && (!numbered || number == "0")
}

func (w *workload) is(condition string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, condition)
}
