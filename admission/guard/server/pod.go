// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/celset/celset/apis/wellknown"
)

// selectPod labels this replica's pod until the context ends, so that the Service of the guard selects only this pod.
func (s *Server) selectPod(ctx context.Context) {
	if err := s.label(ctx); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Labelling the pod of the guard's leader")
	}
}

// label sets the label on this replica's pod and removes it from other pods. The leader repeats the call, because a former
// leader may still label its own pod.
func (s *Server) label(ctx context.Context) error {
	pods := s.options.Client.CoreV1().Pods(s.options.Namespace)
	labelled, err := pods.List(ctx, metav1.ListOptions{LabelSelector: wellknown.LabelGuard})
	if err != nil {
		return err
	}
	wanted := map[string]string{s.options.Pod: `"` + wellknown.GuardActive + `"`}
	for i := range labelled.Items {
		if pod := &labelled.Items[i]; pod.Name != s.options.Pod {
			wanted[pod.Name] = "null"
		} else if pod.Labels[wellknown.LabelGuard] == wellknown.GuardActive {
			delete(wanted, pod.Name)
		}
	}
	var errs []error
	for name, value := range wanted {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, wellknown.LabelGuard, value)
		_, err := pods.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
