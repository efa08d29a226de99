// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	draclient "k8s.io/dynamic-resource-allocation/client"

	"github.com/celset/celset/internal/clusterstate"
)

// Kind reads the objects of one kind. For kinds of resource.k8s.io, it reads the newest version that the API server has, since
// v1beta1, and returns objects of v1.
type Kind struct {
	// Name is the plural name of the kind for messages, such as "ResourceClaims".
	Name string
	// Resource is the resource that the objects are converted to.
	Resource schema.GroupVersionResource
	// Namespaced is set if the objects have a namespace. Optional is set if an API server may lack the kind.
	Namespaced, Optional bool
	// List and Watch read the objects of a namespace, or of all namespaces if it is empty.
	List  func(ctx context.Context, namespace string, options metav1.ListOptions) (runtime.Object, error)
	Watch func(ctx context.Context, namespace string, options metav1.ListOptions) (watch.Interface, error)
}

// objects is the part of a typed client that reads.
type objects[L any] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// kindOf returns a kind of cluster-wide objects that are read by a typed client.
func kindOf[L runtime.Object, C objects[L]](name string, resource schema.GroupVersionResource, in func(namespace string) C) Kind {
	return Kind{
		Name:     name,
		Resource: resource,
		List: func(ctx context.Context, namespace string, options metav1.ListOptions) (runtime.Object, error) {
			return in(namespace).List(ctx, options)
		},
		Watch: func(ctx context.Context, namespace string, options metav1.ListOptions) (watch.Interface, error) {
			return in(namespace).Watch(ctx, options)
		},
	}
}

func (k Kind) namespaced() Kind {
	k.Namespaced = true
	return k
}

func (k Kind) optional() Kind {
	k.Optional = true
	return k
}

// everywhere returns a function that ignores the namespace and returns the client.
func everywhere[C any](client C) func(string) C { return func(string) C { return client } }

// Claims returns the kind ResourceClaim.
func Claims(client kubernetes.Interface) Kind {
	return kindOf("ResourceClaims", resourceapi.SchemeGroupVersion.WithResource("resourceclaims"), draclient.New(client).ResourceClaims).namespaced()
}

// Templates returns the kind ResourceClaimTemplate.
func Templates(client kubernetes.Interface) Kind {
	return kindOf("ResourceClaimTemplates", resourceapi.SchemeGroupVersion.WithResource("resourceclaimtemplates"),
		draclient.New(client).ResourceClaimTemplates).namespaced()
}

// Classes returns the kind DeviceClass.
func Classes(client kubernetes.Interface) Kind {
	return kindOf("DeviceClasses", resourceapi.SchemeGroupVersion.WithResource("deviceclasses"), everywhere(draclient.New(client).DeviceClasses()))
}

// Slices returns the kind ResourceSlice.
func Slices(client kubernetes.Interface) Kind {
	return kindOf("ResourceSlices", resourceapi.SchemeGroupVersion.WithResource("resourceslices"), everywhere(draclient.New(client).ResourceSlices()))
}

// TaintRules returns the kind DeviceTaintRule.
func TaintRules(client kubernetes.Interface) Kind {
	return kindOf("DeviceTaintRules", resourceapi.SchemeGroupVersion.WithResource("devicetaintrules"), everywhere(draclient.New(client).DeviceTaintRules())).optional()
}

// Pods returns the kind Pod.
func Pods(client kubernetes.Interface) Kind {
	return kindOf("Pods", corev1.SchemeGroupVersion.WithResource("pods"), client.CoreV1().Pods).namespaced()
}

// Nodes returns the kind Node.
func Nodes(client kubernetes.Interface) Kind {
	return kindOf("Nodes", corev1.SchemeGroupVersion.WithResource("nodes"), everywhere(client.CoreV1().Nodes()))
}

// Groups returns the kind PodGroup.
func Groups(client kubernetes.Interface) Kind {
	return kindOf("PodGroups", schedulingapi.SchemeGroupVersion.WithResource("podgroups"), client.SchedulingV1beta1().PodGroups).namespaced().optional()
}

// read adds the objects of a namespace, or of all namespaces if it is empty.
func (k Kind) read(ctx context.Context, into *clusterstate.Objects, namespace string) error {
	list, err := k.List(ctx, namespace, metav1.ListOptions{})
	if err == nil {
		err = meta.EachListItem(list, func(object runtime.Object) error {
			Trim(object)
			into.AddObject(object)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", k.Name, err)
	}
	return nil
}
