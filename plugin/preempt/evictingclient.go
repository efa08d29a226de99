// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Upstream's executor evicts a victim by its name. Before the request reaches the API server, another pod may have taken the
// name, for example in a StatefulSet. So the context of an eviction carries the victim, and this client adds the UID of the
// victim as a precondition. If the API server refuses a request because of the UID, the client returns NotFound to the
// executor.

// victimInContext is the context key for the victim of an eviction.
type victimInContext struct{}

// evictingHandle is the handle of upstream's executor. It returns a client that adds the victim's UID to evictions.
type evictingHandle struct{ fwk.Handle }

// ClientSet implements [fwk.Handle].
func (h evictingHandle) ClientSet() kubernetes.Interface { return evictingClient{h.Handle.ClientSet()} }

type evictingClient struct{ kubernetes.Interface }

// CoreV1 implements [kubernetes.Interface].
func (c evictingClient) CoreV1() typed.CoreV1Interface { return evictingGroup{c.Interface.CoreV1()} }

type evictingGroup struct{ typed.CoreV1Interface }

// Pods implements [typed.CoreV1Interface].
func (g evictingGroup) Pods(namespace string) typed.PodInterface {
	return evictingPods{g.CoreV1Interface.Pods(namespace)}
}

type evictingPods struct{ typed.PodInterface }

// victimIn returns the victim in the context of an eviction. It returns nil if the request concerns a pod of another name, or
// if the request is not part of an eviction.
func victimIn(ctx context.Context, name string) *v1.Pod {
	victim, _ := ctx.Value(victimInContext{}).(*v1.Pod)
	if victim == nil || victim.Name != name {
		return nil
	}
	return victim
}

// Delete implements [typed.PodInterface].
func (p evictingPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	victim := victimIn(ctx, name)
	if victim == nil {
		return p.PodInterface.Delete(ctx, name, options)
	}
	options.Preconditions = &metav1.Preconditions{UID: &victim.UID}
	return p.goneIf(ctx, victim, p.PodInterface.Delete(ctx, name, options))
}

// Patch implements [typed.PodInterface]. The executor adds the condition DisruptionTarget before it deletes the victim.
func (p evictingPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*v1.Pod, error) {
	victim := victimIn(ctx, name)
	if victim == nil {
		return p.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
	}
	data, err := withUID(data, victim.UID)
	if err != nil {
		return nil, err
	}
	patched, err := p.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
	return patched, p.goneIf(ctx, victim, err)
}

// withUID adds a UID to a patch. The API server then rejects the patch if the object has another UID.
func withUID(patch []byte, uid types.UID) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	metadata := map[string]any{}
	if raw, ok := fields["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, err
		}
	}
	metadata["uid"] = uid
	raw, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	fields["metadata"] = raw
	return json.Marshal(fields)
}

// goneIf replaces a conflict with NotFound if the victim is gone. It reads the pod first, because a conflict may have another
// cause than the UID.
func (p evictingPods) goneIf(ctx context.Context, victim *v1.Pod, err error) error {
	if !apierrors.IsConflict(err) {
		return err
	}
	current, getErr := p.Get(ctx, victim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(getErr):
		return getErr
	case getErr == nil && current.UID != victim.UID:
		return apierrors.NewNotFound(v1.Resource("pods"), victim.Name)
	default:
		return err
	}
}
