// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leases reads and writes the configurations of package served in Leases.
package leases

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cmd/internal/served"
)

// maxLeases is the maximum number of Leases to read. A namespace with schedulers has few Leases.
const maxLeases = 500

// Read returns the schedulers from the Leases of a namespace, including expired Leases.
func Read(ctx context.Context, client kubernetes.Interface, namespace string) (served.Schedulers, error) {
	leases, err := client.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{Limit: maxLeases})
	if err != nil {
		return nil, err
	}
	var found served.Schedulers
	for i := range leases.Items {
		lease := &leases.Items[i]
		text, published := lease.Annotations[wellknown.AnnotationServes]
		if !published {
			continue
		}
		scheduler, err := served.Decode(lease, text)
		if err != nil {
			return nil, fmt.Errorf("lease %s/%s: annotation %s: %w", lease.Namespace, lease.Name, wellknown.AnnotationServes, err)
		}
		found = append(found, scheduler)
	}
	return found, nil
}

// Publish writes the annotation to the Lease. If the write of a leader election conflicts with this write, the elector retries.
func Publish(ctx context.Context, client kubernetes.Interface, namespace, name, annotation string) error {
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || lease.Annotations[wellknown.AnnotationServes] == annotation {
		return err
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, wellknown.AnnotationServes, annotation)
	_, err = client.CoordinationV1().Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
