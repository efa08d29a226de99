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

// workload is what matters here of a Workload. Kueue's module has the whole type, and requires a hundred others.
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

// essence is a Workload with the fields that [read] and the cache need.
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

// reserved is the condition that the quota of a Workload is reserved, nil if it is not.
func (w *workload) reserved() *metav1.Condition {
	condition := meta.FindStatusCondition(w.Status.Conditions, "QuotaReserved")
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

// waits says whether clusters are to be nominated, if an admission check of MultiKueue is pending. A Workload that is evicted keeps its
// quota until its job is suspended: what is nominated then Kueue does not take back, and takes when quota is reserved again. Of the
// Workloads of one job Kueue nominates the cluster of the first for all others.
func (w *workload) waits() bool {
	number, numbered := w.Annotations[componentNumber]
	return w.DeletionTimestamp.IsZero() && w.reserved() != nil && !w.is("Evicted") && !w.is("Finished") &&
		w.Status.ClusterName == "" && (!numbered || number == "0")
}

func (w *workload) is(condition string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, condition)
}
