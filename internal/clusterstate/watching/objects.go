// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package watching

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
)

func compare(a, b metav1.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// trimPod returns the fields of a pod that answers depend on. Only the resources remain of a pod that runs without devices, or
// that runs in a namespace that is left out. A pod without a node in such a namespace is left out.
func (w *Watcher) trimPod(o object) (object, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T is no pod", o)
	}
	if kept := Kept(pod, w.shows(pod.Namespace)); kept != nil {
		return kept, nil
	}
	return nil, nil //nolint:nilnil // the pod is left out
}

// Kept returns the fields of a pod that answers depend on, or nil. shown is set if the pods of the namespace are shown.
func Kept(pod *corev1.Pod, shown bool) *corev1.Pod {
	reading.Trim(pod)
	switch {
	case shown && (pod.Spec.NodeName == "" || mayHaveDevices(pod)):
		return pod
	case pod.Spec.NodeName != "":
		return reading.OnlyResources(pod)
	default:
		return nil
	}
}

// mayHaveDevices reports whether a pod uses claims or extended resources, or is in a group.
func mayHaveDevices(pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil || pod.Spec.SchedulingGroup != nil {
		return true
	}
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		for name := range c.Resources.Requests {
			if strings.Contains(string(name), "/") {
				return true
			}
		}
		return false
	})
}

func (w *Watcher) shows(namespace string) bool {
	return !w.options.Only || namespace == w.options.Namespace
}

// Objects returns the current objects, as package reading would read them, with limited quantities. Pods has the running pods of
// all namespaces that are shown, so Running has only the others. The objects must not be modified, but the lists may.
func (w *Watcher) Objects() *clusterstate.Objects {
	o := &clusterstate.Objects{HasCluster: true}
	for _, k := range w.kinds {
		if w.others[k.Resource] == k {
			continue
		}
		warnings := k.each(func(object object) {
			if pod, ok := object.(*corev1.Pod); ok && !w.shows(pod.Namespace) {
				o.Running = append(o.Running, pod)
				return
			}
			o.AddObject(object)
		})
		slices.Sort(warnings)
		o.Warnings = append(o.Warnings, warnings...)
		w.explain(k, o)
	}
	slices.SortFunc(o.Running, func(a, b *corev1.Pod) int { return compare(a, b) })
	return o
}

// explain adds a warning if objects of the kind are missing or old.
func (w *Watcher) explain(k *kind, o *clusterstate.Objects) {
	s := k.current()
	warn := func(format string, args ...any) { o.Warnings = append(o.Warnings, fmt.Sprintf(format, args...)) }
	isPods := k.Resource.Resource == "pods"
	if s.everywhere != nil && isPods {
		o.RunningUnknown = s.everywhere.Error()
	}
	switch {
	case s.everywhere == nil || s.list != nil || isPods && w.options.Only:
	case k.Resource.Resource == "resourceclaims":
		warn("%s", reading.OtherClaims(s.everywhere))
	default:
		warn("only %s of namespace %s are shown: %v", k.Name, k.namespace, s.everywhere)
	}
	switch {
	case s.absent:
	case s.list != nil && k.Resource == attributesResource && apierrors.IsForbidden(s.list):
		warn("%s", reading.NoAttributes(s.list))
	case s.list != nil:
		warn("list %s: %v", k.Name, s.list)
		if isPods {
			o.RunningUnknown = s.list.Error()
		}
	case apierrors.IsForbidden(s.watch):
		warn("%s are read every %s, because they can't be watched: %v", k.Name, w.options.Retry, s.watch)
	case s.watch != nil:
		warn("%s may be old: %v", k.Name, s.watch)
	default:
		select {
		case <-k.tried:
		default:
			warn("%s are not read yet", k.Name)
		}
	}
}
