// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClusterProfiles is the inventory of a hub with ClusterProfiles. It has the ClusterProfiles of one namespace.
type ClusterProfiles struct {
	Namespace string
}

// Object implements [Inventory].
func (ClusterProfiles) Object() client.Object { return &profilev1alpha1.ClusterProfile{} }

// Group implements [Inventory]. The namespace may have the label of a set, which then applies to all its clusters.
func (ClusterProfiles) Group() client.Object { return &corev1.Namespace{} }

// Cache implements [Inventory]. It limits the cache to the namespace and removes the access data of clusters.
func (p ClusterProfiles) Cache(options cache.Options) cache.Options {
	if options.ByObject == nil {
		options.ByObject = map[client.Object]cache.ByObject{}
	}
	options.ByObject[p.Object()] = cache.ByObject{
		Namespaces: map[string]cache.Config{p.Namespace: {}}, Transform: withoutAccess, UnsafeDisableDeepCopy: ptr.To(true),
	}
	options.ByObject[p.Group()] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", p.Namespace)}
	return options
}

func withoutAccess(object any) (any, error) {
	if profile, ok := object.(*profilev1alpha1.ClusterProfile); ok {
		profile.Status.AccessProviders, profile.Status.CredentialProviders = nil, nil
		profile.ManagedFields = nil
	}
	return object, nil
}

// Clusters implements [Inventory].
func (p ClusterProfiles) Clusters(ctx context.Context, reader client.Reader) ([]*clusterv1.ManagedCluster, error) {
	set, err := p.set(ctx, reader)
	if err != nil {
		return nil, err
	}
	var list profilev1alpha1.ClusterProfileList
	if err := reader.List(ctx, &list, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ClusterProfiles in namespace %s: %w", p.Namespace, err)
	}
	result := make([]*clusterv1.ManagedCluster, len(list.Items))
	for i := range list.Items {
		result[i] = managed(&list.Items[i], set)
	}
	return byName(result), nil
}

// Cluster implements [Inventory].
func (p ClusterProfiles) Cluster(ctx context.Context, reader client.Reader, name string) (*clusterv1.ManagedCluster, error) {
	profile := &profilev1alpha1.ClusterProfile{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, profile, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return p.Of(ctx, reader, profile)
}

// Of implements [Inventory].
func (p ClusterProfiles) Of(ctx context.Context, reader client.Reader, object client.Object) (*clusterv1.ManagedCluster, error) {
	profile, ok := object.(*profilev1alpha1.ClusterProfile)
	if !ok || profile.Namespace != p.Namespace {
		return nil, fmt.Errorf("the %T %s/%s is not a ClusterProfile in namespace %s", object, object.GetNamespace(), object.GetName(), p.Namespace)
	}
	set, err := p.set(ctx, reader)
	if err != nil {
		return nil, err
	}
	return managed(profile, set), nil
}

// set returns the set in the label of the namespace, or "".
func (p ClusterProfiles) set(ctx context.Context, reader client.Reader) (string, error) {
	namespace := &corev1.Namespace{}
	err := reader.Get(ctx, client.ObjectKey{Name: p.Namespace}, namespace)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("get Namespace %s: %w", p.Namespace, err)
	}
	return namespace.Labels[profilev1alpha1.LabelClusterSetKey], nil
}
