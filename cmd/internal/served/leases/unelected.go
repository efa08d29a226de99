// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cmd/internal/served"
)

const (
	// renewal is the time between renewals of the Lease by a scheduler without leader election. duration is the time without a
	// renewal after which the scheduler counts as stopped.
	renewal  = 20 * time.Second
	duration = time.Minute
)

// Renew publishes the annotation of a scheduler without leader election, and renews the Lease until the context ends. The Lease
// has no holder, so a scheduler with leader election can take it at once. Renew calls observe after each attempt, with its
// error or nil.
func Renew(ctx context.Context, client kubernetes.Interface, namespace, name, annotation string, observe func(error)) {
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	for {
		observe(renew(ctx, client, namespace, name, annotation, time.Now()))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// renew writes the Lease once. It fails if another scheduler uses the Lease and the Lease has not expired.
func renew(ctx context.Context, client kubernetes.Interface, namespace, name, annotation string, now time.Time) error {
	leases := client.CoordinationV1().Leases(namespace)
	spec := coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(now)), LeaseDurationSeconds: ptr.To(int32(duration.Seconds()))}
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{wellknown.AnnotationServes: annotation}}, Spec: spec}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	isOther := ptr.Deref(lease.Spec.HolderIdentity, "") != "" || lease.Annotations[wellknown.AnnotationServes] != annotation
	if isOther && served.Until(lease).After(now) {
		return fmt.Errorf("lease %s/%s is in use by another scheduler (holder %q)", namespace, name, ptr.Deref(lease.Spec.HolderIdentity, ""))
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, wellknown.AnnotationServes, annotation)
	spec.LeaseTransitions = lease.Spec.LeaseTransitions
	lease.Spec = spec
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
