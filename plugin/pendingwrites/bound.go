// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"cmp"
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// boundRetry is the time between two attempts to read a pod.
const boundRetry = 500 * time.Millisecond

// Bound reads a pod from the API server, not from a cache, and repeats failed reads until patience is over. It returns the pod
// if it is bound. It returns nil if the pod is not bound or was deleted.
func (w *Writes) Bound(ctx context.Context, pod *v1.Pod, patience time.Duration) (*v1.Pod, error) {
	var live *v1.Pod
	var last error
	err := wait.PollUntilContextTimeout(ctx, boundRetry, patience, true, func(ctx context.Context) (bool, error) {
		live, last = w.config.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(last) {
			live, last = nil, nil
		}
		return last == nil, nil
	})
	switch {
	case err != nil:
		return nil, cmp.Or(last, err)
	case live == nil || live.UID != pod.UID || live.Spec.NodeName == "":
		return nil, nil
	default:
		return live, nil
	}
}

// protectedKey is the context key for the names of claims that must not be changed or deleted.
type protectedKey struct{}

// Protecting returns a context for [Writes.Client]. With this context, the client refuses to change or delete the claims of a
// bound pod. So upstream's plugin drops its reservations for the pod in memory, but the stored claims stay unchanged.
func Protecting(ctx context.Context, bound *v1.Pod) context.Context {
	names := sets.New[string]()
	for i := range bound.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(bound, &bound.Spec.ResourceClaims[i]); err == nil && name != nil {
			names.Insert(*name)
		}
	}
	if status := bound.Status.ExtendedResourceClaimStatus; status != nil {
		names.Insert(status.ResourceClaimName)
	}
	return context.WithValue(ctx, protectedKey{}, names)
}

// refuseProtected returns an error if the context protects the claim.
func refuseProtected(ctx context.Context, name string) error {
	if names, _ := ctx.Value(protectedKey{}).(sets.Set[string]); names.Has(name) {
		return fmt.Errorf("claim %s keeps its allocation, because its pod is bound", name)
	}
	return nil
}
