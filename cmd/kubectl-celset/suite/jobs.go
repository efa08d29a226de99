// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/clusterstate"
)

// maxPods is the maximum number of pods of the Jobs of a case.
const maxPods = 1000

// withPods returns the documents with the pods of each Job in place of the Job, because a gang is often a PodGroup and a Job.
func withPods(documents []clusterstate.Document) ([]clusterstate.Document, error) {
	var all []clusterstate.Document
	pods := 0
	for _, d := range documents {
		if d.Object.GroupVersionKind() != batchv1.SchemeGroupVersion.WithKind("Job") {
			all = append(all, d)
			continue
		}
		job := &batchv1.Job{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(d.Object.Object, job, true); err != nil {
			return nil, fmt.Errorf("%s: Job %s: %w", d.Source, d.Object.GetName(), err)
		}
		count := int(ptr.Deref(job.Spec.Parallelism, 1))
		if pods += max(0, count); pods > maxPods {
			return nil, fmt.Errorf("%s: Job %s: spec.parallelism: the Jobs of the case have more than %d pods, the limit: use smaller Jobs", d.Source, job.Name, maxPods)
		}
		for i := range count {
			pod, err := podOf(job, i)
			if err != nil {
				return nil, fmt.Errorf("%s: Job %s: %w", d.Source, job.Name, err)
			}
			all = append(all, clusterstate.Document{Source: d.Source, Object: pod})
		}
	}
	return all, nil
}

// podOf returns a pod of a Job, with the labels that the Job controller sets and that order the pods of a group.
func podOf(job *batchv1.Job, index int) (*unstructured.Unstructured, error) {
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
	pod.APIVersion, pod.Kind = corev1.SchemeGroupVersion.String(), "Pod"
	pod.Namespace, pod.Name = job.Namespace, fmt.Sprintf("%s-%d", job.Name, index)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[batchv1.JobNameLabel] = job.Name
	if ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion {
		pod.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	return &unstructured.Unstructured{Object: object}, err
}
