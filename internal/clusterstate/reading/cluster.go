// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	draclient "k8s.io/dynamic-resource-allocation/client"

	"github.com/celset/celset/internal/clusterstate"
)

// Cluster lists the objects that allocations depend on: claims, templates, classes, slices, taint rules, pods and nodes. It
// lists claims of all namespaces, because any claim may have devices. It lists templates and pods of one namespace, or of all
// namespaces if namespace is empty. It supports every version of resource.k8s.io since v1beta1.
//
// If RBAC forbids nodes or taint rules, Cluster adds a warning. If RBAC forbids claims of other namespaces, it adds a
// warning that the devices of these claims look free. If the API server has no taint rules, Cluster ignores them.
func Cluster(ctx context.Context, client kubernetes.Interface, namespace string) (*clusterstate.Objects, error) {
	dra := draclient.New(client)
	o := &clusterstate.Objects{HasCluster: true}
	return o, errors.Join(
		readClaims(ctx, o, dra, namespace),
		read(&o.Templates, "ResourceClaimTemplates", func() (*resourceapi.ResourceClaimTemplateList, error) {
			return dra.ResourceClaimTemplates(namespace).List(ctx, metav1.ListOptions{})
		}, func(list *resourceapi.ResourceClaimTemplateList) []resourceapi.ResourceClaimTemplate {
			return list.Items
		}),
		read(&o.Classes, "DeviceClasses", func() (*resourceapi.DeviceClassList, error) {
			return dra.DeviceClasses().List(ctx, metav1.ListOptions{})
		}, func(list *resourceapi.DeviceClassList) []resourceapi.DeviceClass { return list.Items }),
		read(&o.Slices, "ResourceSlices", func() (*resourceapi.ResourceSliceList, error) {
			return dra.ResourceSlices().List(ctx, metav1.ListOptions{})
		}, func(list *resourceapi.ResourceSliceList) []resourceapi.ResourceSlice { return list.Items }),
		read(&o.Pods, "Pods", func() (*corev1.PodList, error) {
			return client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		}, func(list *corev1.PodList) []corev1.Pod { return list.Items }),
		warn(o, read(&o.Nodes, "Nodes", func() (*corev1.NodeList, error) {
			return client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		}, func(list *corev1.NodeList) []corev1.Node { return list.Items })),
		warn(o, read(&o.TaintRules, "DeviceTaintRules", func() (*resourceapi.DeviceTaintRuleList, error) {
			return dra.DeviceTaintRules().List(ctx, metav1.ListOptions{})
		}, func(list *resourceapi.DeviceTaintRuleList) []resourceapi.DeviceTaintRule { return list.Items })),
	)
}

// AddGroups adds the PodGroups of a namespace. It adds nothing if the API server does not have PodGroups.
func AddGroups(ctx context.Context, o *clusterstate.Objects, client kubernetes.Interface, namespace string) error {
	return warn(o, read(&o.Groups, "PodGroups", func() (*schedulingapi.PodGroupList, error) {
		return client.SchedulingV1beta1().PodGroups(namespace).List(ctx, metav1.ListOptions{})
	}, func(list *schedulingapi.PodGroupList) []schedulingapi.PodGroup { return list.Items }))
}

// AddRunning adds the pods of all namespaces that have a node. If RBAC forbids listing them, it sets RunningUnknown.
func AddRunning(ctx context.Context, o *clusterstate.Objects, client kubernetes.Interface) error {
	pods := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
	}))
	err := pods.EachListItem(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="}, func(object runtime.Object) error {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			o.Running = append(o.Running, onlyResources(pod))
		}
		return nil
	})
	if apierrors.IsForbidden(err) {
		o.RunningUnknown = err.Error()
		return nil
	}
	return err
}

// onlyResources returns a copy of a pod with only the fields that determine its resources, because a large cluster has very
// many pods.
func onlyResources(pod *corev1.Pod) *corev1.Pod {
	containers := func(all []corev1.Container) (kept []corev1.Container) {
		for _, c := range all {
			kept = append(kept, corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy})
		}
		return kept
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, DeletionTimestamp: pod.DeletionTimestamp},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
			InitContainers: containers(pod.Spec.InitContainers), Containers: containers(pod.Spec.Containers),
		},
		Status: pod.Status,
	}
}

// readClaims reads the claims of all namespaces. If RBAC forbids this, it reads the claims of one namespace and adds a warning.
func readClaims(ctx context.Context, o *clusterstate.Objects, dra *draclient.Client, namespace string) error {
	from := func(namespace string) error {
		return read(&o.Claims, "ResourceClaims", func() (*resourceapi.ResourceClaimList, error) {
			return dra.ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		}, func(list *resourceapi.ResourceClaimList) []resourceapi.ResourceClaim { return list.Items })
	}
	err := from(metav1.NamespaceAll)
	if namespace == metav1.NamespaceAll || !apierrors.IsForbidden(err) {
		return err
	}
	o.Warnings = append(o.Warnings, fmt.Sprintf("the claims of other namespaces can't be read, so their devices are shown as free: %v", err))
	return from(namespace)
}

func read[T, L any](into *[]*T, what string, list func() (L, error), items func(L) []T) error {
	result, err := list()
	if err != nil {
		return fmt.Errorf("list %s: %w", what, err)
	}
	all := items(result)
	for i := range all {
		*into = append(*into, &all[i])
	}
	return nil
}

// warn returns nil if the API does not exist. If the request was forbidden, it adds a warning and returns nil.
func warn(o *clusterstate.Objects, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err), errors.Is(err, draclient.ErrNotImplemented):
		return nil
	case apierrors.IsForbidden(err):
		o.Warnings = append(o.Warnings, err.Error())
		return nil
	default:
		return err
	}
}
