// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
	o := &clusterstate.Objects{HasCluster: true}
	return o, errors.Join(
		readClaims(ctx, o, client, namespace),
		Templates(client).read(ctx, o, namespace),
		Classes(client).read(ctx, o, metav1.NamespaceAll),
		Slices(client).read(ctx, o, metav1.NamespaceAll),
		Pods(client).read(ctx, o, namespace),
		warn(o, Nodes(client).read(ctx, o, metav1.NamespaceAll)),
		warn(o, TaintRules(client).read(ctx, o, metav1.NamespaceAll)),
	)
}

// AddGroups adds the PodGroups of a namespace. It adds nothing if the API server does not have PodGroups.
func AddGroups(ctx context.Context, o *clusterstate.Objects, client kubernetes.Interface, namespace string) error {
	return warn(o, Groups(client).read(ctx, o, namespace))
}

// AddRunning adds the pods of all namespaces that have a node. If RBAC forbids listing them, it sets RunningUnknown.
func AddRunning(ctx context.Context, o *clusterstate.Objects, client kubernetes.Interface) error {
	pods := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
	}))
	err := pods.EachListItem(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="}, func(object runtime.Object) error {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			o.Running = append(o.Running, OnlyResources(pod))
		}
		return nil
	})
	if apierrors.IsForbidden(err) {
		o.RunningUnknown = err.Error()
		return nil
	}
	return err
}

// readClaims reads the claims of all namespaces. If RBAC forbids this, it reads the claims of one namespace and adds a warning.
func readClaims(ctx context.Context, o *clusterstate.Objects, client kubernetes.Interface, namespace string) error {
	claims := Claims(client)
	err := claims.read(ctx, o, metav1.NamespaceAll)
	if namespace == metav1.NamespaceAll || !apierrors.IsForbidden(err) {
		return err
	}
	o.Warnings = append(o.Warnings, OtherClaims(err))
	return claims.read(ctx, o, namespace)
}

// OtherClaims returns the warning that the claims of other namespaces can't be read.
func OtherClaims(err error) string {
	return fmt.Sprintf("the claims of other namespaces can't be read, so their devices are shown as free: %v", err)
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
