// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package indoubt

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// keptKey is where a context has the names of claims that are kept.
type keptKey struct{}

// Keeping returns a context with which [Writes.Client] refuses to change or delete the claims with these names: they
// are those of a pod that is bound, and whoever takes them back does not know that. What it remembers of them in
// memory it forgets all the same.
func Keeping(ctx context.Context, names sets.Set[string]) context.Context {
	return context.WithValue(ctx, keptKey{}, names)
}

// refuseKept is an error if the claim is kept.
func refuseKept(ctx context.Context, name string) error {
	if names, _ := ctx.Value(keptKey{}).(sets.Set[string]); names.Has(name) {
		return fmt.Errorf("claim %s is kept: the pod that it is for is bound", name)
	}
	return nil
}

// Update is where upstream's plugin takes away the finalizer, before it deletes a claim.
func (c watchedClaims) Update(ctx context.Context, claim *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if err := refuseKept(ctx, claim.Name); err != nil {
		return nil, err
	}
	return c.ResourceClaimInterface.Update(ctx, claim, opts)
}

// Patch is where it takes a pod out of those that a claim is reserved for.
func (c watchedClaims) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*resourceapi.ResourceClaim, error) {
	if err := refuseKept(ctx, name); err != nil {
		return nil, err
	}
	return c.ResourceClaimInterface.Patch(ctx, name, kind, data, opts, subresources...)
}

// Delete is where it takes back a claim that was made for extended resources.
func (c watchedClaims) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	if err := refuseKept(ctx, name); err != nil {
		return err
	}
	return c.ResourceClaimInterface.Delete(ctx, name, opts)
}
